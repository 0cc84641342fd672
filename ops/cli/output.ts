import { env, stderr, stdout } from 'node:process';
import { stripVTControlCharacters } from 'node:util';
import pc from 'picocolors';
import { asAgonError } from '../../services/kernel/index.js';

/** Exit codes that scripts can trust. */
export const EXIT = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const;

/** Colours only on a terminal; NO_COLOR and FORCE_COLOR are respected. */
const coloured = (stream: { isTTY?: boolean }) => !env.NO_COLOR && (Boolean(env.FORCE_COLOR) || stream.isTTY === true);
export const colour = pc.createColors(coloured(stdout));

export interface OutputOptions {
  readonly json?: boolean;
}

/** The flags that every command has. */
export type Flags = OutputOptions & { readonly data?: string };

/** What a command has to say, as JSON and for people. Where that is not good, it exits 1. */
export interface Outcome {
  readonly json: unknown;
  readonly text: string;
  readonly good?: boolean;
}

/** What stands between commas. */
export const listOf = (text: string): string[] => text.split(',').map((each) => each.trim());

/** One line of JSON, or the text for people. */
export function print(options: OutputOptions, value: unknown, text: string): void {
  stdout.write(options.json ? `${toJson(value)}\n` : `${text}\n`);
}

/** JSON with amounts as strings, since JSON has no big integers. */
export const toJson = (value: unknown): string =>
  JSON.stringify(value, (_key, item) => (typeof item === 'bigint' ? item.toString() : item));

export function printError(options: OutputOptions, thrown: unknown): void {
  const { code, message, details } = asAgonError(thrown);
  if (options.json) stderr.write(`${toJson({ error: { code, message, details } })}\n`);
  else stderr.write(`${pc.createColors(coloured(stderr)).red('error')} ${code}: ${message}\n`);
}

const QUIET_MS = 1_000;

/**
 * A column whose title begins with ">" stands to the right.
 *
 * @example table(['agent', '>rating'], [['gold.minimax', 1612]])
 */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const titles = head.map((title) => title.replace(/^>/, ''));
  const widths = titles.map((title, i) => Math.max(visible(title), ...rows.map((row) => visible(`${row[i] ?? ''}`))));
  const line = (cells: readonly (string | number)[]) =>
    cells
      .map((cell, i) => {
        const pad = ' '.repeat(Math.max(0, (widths[i] ?? 0) - visible(`${cell}`)));
        return head[i]?.startsWith('>') ? `${pad}${cell}` : `${cell}${pad}`;
      })
      .join('  ')
      .trimEnd();
  return [line(titles.map((title) => colour.bold(title))), ...rows.map(line)].join('\n');
}

/** Colours have no width. */
const visible = (text: string) => [...stripVTControlCharacters(text)].length;

/** A progress bar on a terminal's standard error; elsewhere a line at each tenth, if it takes long enough to wonder. */
export function progress(label: string): { at(done: number, total: number, note?: string): void; end(): void } {
  const width = 28;
  const startedMs = performance.now();
  let lastTenth = 0;
  return {
    at(done, total, note) {
      const share = total === 0 ? 1 : done / total;
      if (stderr.isTTY) {
        const filled = Math.round(share * width);
        const bar = '█'.repeat(filled) + '░'.repeat(width - filled);
        const leftS = done > 0 ? (((performance.now() - startedMs) / done) * (total - done)) / 1000 : 0;
        stderr.write(`\r${label} ${bar} ${done}/${total}  ${note ?? `${Math.ceil(leftS)} s left`}   `);
      } else if (Math.floor(share * 10) > lastTenth && performance.now() - startedMs > QUIET_MS) {
        lastTenth = Math.floor(share * 10);
        stderr.write(`${label} ${done}/${total}${note ? `  ${note}` : ''}\n`);
      }
    },
    end() {
      if (stderr.isTTY) stderr.write('\r\u001b[K');
    },
  };
}
