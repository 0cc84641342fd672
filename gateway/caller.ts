import { type Actor, AgonError, isStaff, type Rate, type RateLimits } from '../services/kernel/index.js';
import { type PlanPorts, plansOf } from './use-cases/plans.js';

/** How often whom. What a known caller may ask for follows from its plan; the rest is the same for everybody. */
export const RATES = {
  /** Before anybody is known: a household or an office may share an address, so this is the widest of all limits. */
  address: { perMinute: 1_200, burst: 2_400 },
  staff: { perMinute: 6_000, burst: 12_000 },
  /** Signing in, before anybody is known: people do it now and then, and whoever guesses does it all the time. */
  doors: { perMinute: 20, burst: 40 },
  /** Matches against the house take nobody's consent: each call is a match, with cells and a place in the log. */
  house: { perMinute: 60, burst: 120 },
} satisfies Record<string, Rate>;

/**
 * Who calls, as far as an address tells: whoever has an IPv6 network has 2^64 addresses in it and is one caller, and
 * an IPv4 address written as IPv6 is the same one.
 *
 * @example callerAt('2001:db8:0:7::1') // '2001:db8:0:7::/64'
 */
export function callerAt(ip: string): string {
  if (!ip.includes(':')) return ip;
  const [bare = ''] = ip.split('%');
  if (!URL.canParse(`http://[${bare}]`)) return ip;
  const [head = '', tail] = new URL(`http://[${bare}]`).hostname.slice(1, -1).split('::');
  const [first, last] = [head, tail ?? ''].map((part) => (part === '' ? [] : part.split(':'))) as [string[], string[]];
  const groups = [...first, ...Array<string>(8 - first.length - last.length).fill('0'), ...last];
  if (groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff') {
    return groups
      .slice(6)
      .flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255])
      .join('.');
  }
  return `${groups.slice(0, 4).join(':')}::/64`;
}

/** Whether this is a caller on this machine. Behind a proxy everybody seems to be, so then nobody is. */
export const isLocal = (ip: string, proxies: number) => proxies === 0 && /^(::ffff:)?127\.|^::1$/.test(ip);

/** A page may come from where it was served, or from an origin that was named; whoever is no browser says none. */
export const isWelcome = (
  { origin, host }: { origin?: string | undefined; host?: string | undefined },
  origins: readonly string[],
) => origin === undefined || origins.includes(origin) || (URL.canParse(origin) && new URL(origin).host === host);

/** A known caller's bucket: of the agent it speaks for, where that is one, and of the account otherwise. */
export const bucketOf = (actor: Actor, agentId?: string) =>
  agentId === undefined || isStaff(actor) ? `actor:${actor.id}` : `agent:${agentId}`;

/** By the best plan among those one acts for; at once, twice what a minute allows. */
export async function rateOf(ports: PlanPorts, actor: Actor): Promise<Rate> {
  if (isStaff(actor)) return RATES.staff;
  const perMinute = await plansOf(ports).requestsOf([actor.id, ...Object.keys(actor.memberOf ?? {})]);
  return { perMinute, burst: perMinute * 2 };
}

/** Takes one from a bucket and says how many are left, or refuses. The bucket's own name says who it is, if nothing does. */
export async function assertWithin(
  limits: RateLimits,
  bucket: string,
  rate: Rate,
  who = bucket.slice(bucket.indexOf(':') + 1),
): Promise<number> {
  const taken = await limits.take(bucket, rate);
  if (taken.ok) return taken.left;
  const { retryAfterMs } = taken;
  const seconds = Math.ceil(retryAfterMs / 1000);
  throw new AgonError('LIMITS.EXCEEDED', `This is more than ${who} may ask for at once. Try again in ${seconds} s.`, {
    retryAfterMs,
  });
}

/** Places that are taken for a while: so many in all, and so many for each caller. */
export class Seats {
  private readonly byCaller = new Map<string, number>();
  private taken = 0;

  constructor(
    private readonly max: number,
    private readonly perCallerMax: number,
  ) {}

  hasRoom(caller: string): boolean {
    return this.taken < this.max && (this.byCaller.get(caller) ?? 0) < this.perCallerMax;
  }

  /** Gives the place back when called, once; undefined when there is none. */
  take(caller: string): (() => void) | undefined {
    if (!this.hasRoom(caller)) return undefined;
    this.taken += 1;
    this.byCaller.set(caller, (this.byCaller.get(caller) ?? 0) + 1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.taken -= 1;
      const others = (this.byCaller.get(caller) ?? 1) - 1;
      if (others > 0) this.byCaller.set(caller, others);
      else this.byCaller.delete(caller);
    };
  }
}
