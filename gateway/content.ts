import {
  type Actor,
  AgonError,
  type ContentKind,
  classOf,
  type Handle,
  isStaff,
  valuesAt,
} from '../services/kernel/index.js';

/** Somebody else's judgement of a text; refuses with CONTENT.UNCHECKED when it cannot be had. */
export interface Moderation {
  review(item: { readonly kind: ContentKind; readonly text: string }): Promise<Verdict>;
}

export interface Verdict {
  readonly flagged: boolean;
  /** What it was found to be, in the words of whoever looked at it. */
  readonly categories: readonly string[];
}

export interface ContentOptions {
  /** Words that are refused. `word*` refuses what begins with it, `*word*` what holds it. */
  readonly blocked?: readonly string[];
  readonly moderation?: Moderation | undefined;
}

interface Rules {
  readonly lengthMax: number;
  /** Line ends and tabs belong to a text of several lines. */
  readonly lines: boolean;
  readonly links: boolean;
  /** Whether it could be taken for somebody's who speaks for the arena. */
  readonly reserved: boolean;
}

const RULES: Readonly<Record<ContentKind, Rules>> = {
  name: { lengthMax: 39, lines: false, links: false, reserved: true },
  title: { lengthMax: 80, lines: false, links: false, reserved: true },
  prompt: { lengthMax: 32_768, lines: true, links: true, reserved: false },
  chat: { lengthMax: 500, lines: false, links: false, reserved: false },
};

const RESERVED = new Set(
  `admin administrator agon arena audit auditor billing help house mod moderator null official operator owner payments
   root runner security staff stripe support system undefined`.split(/\s+/),
);

/** Letters of other scripts after the Latin one that they look like. Those in use, not all of Unicode's. */
const LOOKALIKES = readAs(
  `aаα bвʙβ cсϲ dԁ eеєε gɡ hһнη iіιıї jјϳ kкκ lӏ mм nпո oоοσօ pрρ qԛ rг sѕ tтτ uυս vνѵ wԝω xхχ yуγү zʐ`,
);
/** Digits and signs that are read as letters. */
const READ_AS = readAs('o0 i1!| e3 a4@ s5$ t7 b8');

function readAs(table: string): ReadonlyMap<string, string> {
  const rows = table.split(' ').map((row) => [...row]);
  return new Map(rows.flatMap(([letter = '', ...others]) => others.map((other) => [other, letter] as const)));
}

/**
 * A text as it is read: full-width, decorated, accented, foreign and invisible letters become the plain ones that they
 * look like.
 *
 * @example plain('Ａdmіn') // 'admin', whose i was a Cyrillic one
 */
export function plain(text: string): string {
  const bare = text
    .normalize('NFKC')
    .toLowerCase()
    .normalize('NFD')
    .replace(/[\p{M}\p{Cf}]/gu, '');
  return [...bare].map((char) => LOOKALIKES.get(char) ?? char).join('');
}

const read = (text: string) => [...plain(text)].map((char) => READ_AS.get(char) ?? char).join('');

/** Turns text around, or hides in it. Joiners are needed in some scripts and pictures; between plain letters they hide. */
const INVISIBLE =
  /\u034f|\p{Bidi_Control}|[\u00ad\u115f\u1160\u180e\u200b\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/u;
const STRAY_JOINER =
  /(^|[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\d\s])[\u200c\u200d]|[\u200c\u200d]($|\s)/u;
const PILED_MARKS = /\p{M}{4,}/u;
const MIXED = /(?=[\p{L}\d]*\p{Script=Latin})(?=[\p{L}\d]*[\p{Script=Cyrillic}\p{Script=Greek}])[\p{L}\d]+/u;
const LINK =
  /\b(?:[a-z][a-z\d+.-]{1,15}:\/\/|www\.)\S|\b(?:javascript|data|mailto):\S|\b[a-z\d-]+(?:\.[a-z\d-]+)*\.(?:com|net|org|io|ai|app|dev|gg|xyz|ru|cn|info|biz|co|me|link|click|top|shop|site|online)\b(?!\.?\w)/iu;
const EMAIL = /[\w.%+-]+\s?(?:@|\(at\)|\[at\])\s?[\w-]+(?:(?:\.|\s?(?:\(dot\)|\[dot\])\s?)[\w-]+)+/iu;

/** What people may call things and say to each other. */
export class Content {
  private readonly blocked: readonly ((words: readonly string[], joined: string) => boolean)[];
  private readonly moderation: Moderation | undefined;

  constructor({ blocked = [], moderation }: ContentOptions = {}) {
    this.blocked = blocked.map(matcherOf);
    this.moderation = moderation;
  }

  /** Refuses a text that breaks a rule, with the code of the first one. Somebody else is asked last. */
  async assert(kind: ContentKind, text: string, actor?: Actor): Promise<void> {
    const broken = this.broken(kind, text, actor);
    if (broken) throw new AgonError(broken.code, `This ${kind} ${broken.why}`, { kind });
    const verdict = await this.moderation?.review({ kind, text });
    if (!verdict?.flagged) return;
    const categories = verdict.categories.slice(0, 8);
    const what = categories.length > 0 ? ` (${categories.join(', ')})` : '';
    throw new AgonError('CONTENT.REFUSED', `This ${kind} was found unfit${what}. Choose another.`, {
      kind,
      categories,
    });
  }

  /** The rules alone. Staff may use the names that are kept for it. */
  broken(kind: ContentKind, text: string, actor?: Actor): { code: string; why: string } | undefined {
    const { lengthMax, lines, links, reserved } = RULES[kind];
    const length = [...text].length;
    if (text.trim() === '') return { code: 'CONTENT.EMPTY', why: 'holds nothing that can be read.' };
    if (length > lengthMax) {
      return { code: 'CONTENT.TOO_LONG', why: `has ${length} characters; at most ${lengthMax} are allowed.` };
    }
    if (!isReadable(lines ? text.replace(/\r?\n|\t/g, ' ') : text)) {
      const why = 'holds control characters, or characters that hide or turn text around. Leave them out.';
      return { code: 'CONTENT.UNREADABLE', why };
    }
    if (kind !== 'prompt' && MIXED.test(text.normalize('NFKC'))) {
      return { code: 'CONTENT.CONFUSABLE', why: 'mixes letters that look alike in one word. Use one alphabet a word.' };
    }
    if (reserved && !(actor && isStaff(actor)) && isReserved(text)) {
      return { code: 'CONTENT.RESERVED', why: 'is kept for those who run the arena. Choose another.' };
    }
    if (!links && EMAIL.test(text)) return { code: 'CONTENT.EMAIL', why: 'must not hold an e-mail address.' };
    if (!links && LINK.test(text)) return { code: 'CONTENT.LINK', why: 'must not hold a link.' };
    return this.isBlocked(text)
      ? { code: 'CONTENT.BLOCKED', why: 'holds a word that is not allowed here.' }
      : undefined;
  }

  private isBlocked(text: string): boolean {
    if (this.blocked.length === 0) return false;
    return [plain(text), read(text)].some((seen) => {
      const words = seen.split(/[^\p{L}\d]+/u).filter((word) => word !== '');
      return this.blocked.some((matches) => matches(withSpelledOut(words), words.join('')));
    });
  }
}

/**
 * Holds commands to the rules of the fields that their declarations call chosen, where all ways in lead to: a way of its
 * own would have to remember them.
 */
export const withContentRules = (handle: Handle, content: Content | undefined): Handle => {
  if (!content) return handle;
  return (context, command) => {
    const { actor } = command.meta;
    const { chosen } = classOf(command);
    if (chosen.length === 0 || actor.role === 'system') return handle(context, command);
    const asserted = chosen.flatMap(({ path, kind }) => {
      // A title may be left out.
      const texts = valuesAt(command.data, path).filter((text) => typeof text === 'string' && text !== '');
      return texts.map((text) => content.assert(kind, text as string, actor));
    });
    return Promise.all(asserted).then(() => handle(context, command));
  };
};

const isReadable = (text: string) =>
  text.isWellFormed() &&
  !/\p{Cc}/u.test(text) &&
  ![INVISIBLE, STRAY_JOINER, PILED_MARKS].some((pattern) => pattern.test(text));

/** "admin", and "Admin_1" and "the official admin" as well: digits and little words around it make no other name. */
function isReserved(text: string): boolean {
  const words = plain(text)
    .split(/[^\p{L}\d]+/u)
    .map((word) => word.replace(/^\d+|\d+$/g, ''))
    .filter((word) => word !== '' && word !== 'the');
  return words.length > 0 && (words.every((word) => RESERVED.has(word)) || RESERVED.has(words.join('')));
}

/** "b a d" is read as one word. */
function withSpelledOut(words: readonly string[]): readonly string[] {
  const runs = words.map((word) => (word.length === 1 ? word : ' ')).join('');
  return [...words, ...runs.split(/ +/).filter((run) => run.length > 2)];
}

function matcherOf(entry: string): (words: readonly string[], joined: string) => boolean {
  const word = plain(entry.replaceAll('*', ''));
  if (word === '') throw new AgonError('CONFIG.INVALID', `"${entry}" blocks everything. Name a word.`);
  if (entry.startsWith('*')) return (_words, joined) => joined.includes(word);
  if (entry.endsWith('*')) return (words) => words.some((each) => each.startsWith(word));
  return (words) => words.includes(word);
}

/** One entry a line; `#` begins a remark. */
export const blockedIn = (text: string): string[] =>
  text.split('\n').flatMap((line) => {
    const entry = line.replace(/#.*/, '').trim();
    return entry === '' ? [] : [entry];
  });
