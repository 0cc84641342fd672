/** Drawing for the games' pictures. Everything is plain SVG text; nothing in it ever comes from an agent. */

/** By seat, and far enough apart to be told from each other, also by those who do not see red and green alike. */
const seatColours = ['#2f6fde', '#e8663d', '#2a9d7c', '#b4499b', '#d9a21b', '#5a6ad0', '#8a5a3c', '#5b6b7b'] as const;

export const seatColour = (seat: number): string => seatColours[seat % seatColours.length] ?? seatColours[0];

export const ink = '#1c2733';
const paper = '#f6f4ef';
export const muted = '#7b8794';

type Attributes = Readonly<Record<string, string | number>>;

/**
 * One element.
 *
 * @example tag('circle', { cx: 5, cy: 5, r: 4 }) // <circle cx="5" cy="5" r="4"/>
 */
export function tag(name: string, attributes: Attributes, ...inside: readonly string[]): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${tidy(value)}"`);
  const open = `<${name}${written.join('')}`;
  return inside.length === 0 ? `${open}/>` : `${open}>${inside.join('')}</${name}>`;
}

const tidy = (value: string | number): string | number =>
  typeof value === 'number' ? Math.round(value * 100) / 100 : value;

export const rect = (x: number, y: number, width: number, height: number, more: Attributes): string =>
  tag('rect', { x, y, width, height, ...more });

export const circle = (cx: number, cy: number, r: number, more: Attributes): string =>
  tag('circle', { cx, cy, r, ...more });

export const path = (d: string, more: Attributes): string => tag('path', { d, ...more });

/** Text that is centred on a point unless told otherwise. */
export const text = (x: number, y: number, size: number, words: string | number, more: Attributes = {}): string =>
  tag('text', { x, y, 'font-size': size, 'text-anchor': 'middle', fill: ink, ...more }, escaped(`${words}`));

const escaped = (words: string): string => words.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

/** A whole picture with a title for those who cannot see it. */
export function picture(width: number, height: number, title: string, ...body: readonly string[]): string {
  return tag(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      'font-family': "'Helvetica Neue', Helvetica, Arial, sans-serif",
    },
    tag('title', {}, escaped(title)),
    rect(0, 0, width, height, { rx: 16, fill: paper }),
    ...body,
  );
}
