import { randomBytes } from 'node:crypto';
import { hash, verify } from '@node-rs/argon2';
import { AgonError } from '../../services/kernel/index.js';

/** OWASP's first choice for argon2id: 19 MiB, two passes, one lane. The library's own algorithm is argon2id. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;
const COST_TEXT = `$argon2id$v=19$m=${COST.memoryCost},t=${COST.timeCost},p=${COST.parallelism}$`;

/** Each check takes a thread and its memory; what comes beyond this waits, and beyond that is sent away. */
const AT_ONCE = 2;
const WAITING_MAX = 64;

const LENGTH = { min: 10, max: 256 } as const;

/** Length is what counts. What the account's name gives away is refused, and nothing else is asked for. */
export function assertPassword(password: string, accountId: string): void {
  const length = [...password].length;
  if (length < LENGTH.min || length > LENGTH.max) {
    throw new AgonError('AUTH.WEAK_PASSWORD', `A password has ${LENGTH.min} to ${LENGTH.max} characters.`);
  }
  const varied = new Set(password).size > 3;
  const said = accountId.length > 2 && password.toLowerCase().replaceAll(accountId, '').length < LENGTH.min;
  if (!varied || said) {
    throw new AgonError('AUTH.WEAK_PASSWORD', 'This password is too easy to guess. Take a longer one.');
  }
}

/** Passwords are hashed and compared here, a few at a time. */
export class Passwords {
  private working = 0;
  private readonly waiting: (() => void)[] = [];
  private nobody: Promise<string> | undefined;

  hash(password: string): Promise<string> {
    return this.inTurn(() => hash(password.normalize('NFKC'), COST));
  }

  /** One comparison, always: with nobody's hash when there is none, so that time does not tell who has an account. */
  async matches(known: string | undefined, password: string): Promise<boolean> {
    this.nobody ??= this.hash(randomBytes(24).toString('hex'));
    const against = known ?? (await this.nobody);
    const same = await this.inTurn(() => verify(against, password.normalize('NFKC')));
    return same && known !== undefined;
  }

  /** Written when something else was good practice. */
  isOld(known: string): boolean {
    return !known.startsWith(COST_TEXT);
  }

  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.working >= AT_ONCE) {
      if (this.waiting.length >= WAITING_MAX) {
        throw new AgonError('LIMITS.BUSY', 'Too many are signing in at this moment. Try again in a few seconds.');
      }
      await new Promise<void>((turn) => this.waiting.push(turn));
    } else this.working += 1;
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.working -= 1;
    }
  }
}
