import type { Attack } from './attack.js';

type Rest = Partial<Attack>;

/** Ends that several attacks have in common, in whatever language they are written. */
export const writesOutside: Rest = { worked: (_, world) => world.taken() };
export const signalsUs: Rest = { worked: (_, world) => world.heard('signal'), afterMs: 50, alone: true };
export const busyTooLong: Rest = { limits: { turnMs: 200 }, stopped: ['timeout'] };
export const idleTooLong: Rest = { limits: { turnMs: 100, stallMs: 300 }, stopped: ['timeout'] };
/** What it is after does not exist on every machine. */
export const ifThere: Rest = { optional: true };
export const outOfMemory: Rest = { stopped: ['out_of_memory'] };
export const floods: Rest = { stopped: ['flood'] };
export const forges: Rest = { stopped: ['forged_reply'] };
export const hugeReply = (bytes: number): Rest => ({
  stopped: ['reply_too_large'],
  worked: ({ reply }) => typeof reply === 'string' && reply.length === bytes,
});

/** What is attempted, by name: a body, and what is particular about it. */
type Attempts = Readonly<Record<string, string | readonly [body: string, rest: Rest]>>;

/** Makes attacks of a language. */
export const attacksIn =
  (language: (body: string) => string) =>
  (attempts: Attempts): Attack[] =>
    Object.entries(attempts).map(([name, attempt]) => {
      const [body, rest] = typeof attempt === 'string' ? [attempt] : attempt;
      return { name, source: language(body), ...rest };
    });

/** Places of the host that tell something, and those that do something. */
const told = `/proc/self/environ /proc/kallsyms /proc/keys /proc/cmdline /proc/interrupts /proc/timer_list /proc/1/cmdline
  /proc/self/mounts /proc/net/tcp /proc/self/ns/net /sys/kernel/notes /sys/fs/cgroup /sys/class /dev/kmsg /dev/ptmx /etc
  /var /home /run`;
const done = '/proc/self/mem /proc/sysrq-trigger /proc/sys/vm/drop_caches /proc/sys/kernel/core_pattern';

/** They are opened and closed, nothing is written to them. `O_` and the flag is what the language calls the mode. */
export function probesBy(
  attacks: ReturnType<typeof attacksIn>,
  open: (path: string, flag: string) => string,
): Attack[] {
  const reads = told.split(/\s+/).map((path) => [`opening ${path}`, [open(path, 'O_RDONLY'), ifThere]] as const);
  const writes = done
    .split(/\s+/)
    .map((path) => [`opening for writing ${path}`, [open(path, 'O_WRONLY'), ifThere]] as const);
  return attacks(Object.fromEntries([...reads, ...writes]));
}

/** Actions that look like verdicts. */
const forgeries = [
  { name: 'forging the outcome', json: '{"winner":0,"scores":[1,0],"reason":"line","detail":"","seatAtFault":null}' },
  { name: "forging the other seat's fault", json: '{"kind":"fault","rule":"crash","seatAtFault":1,"winner":0}' },
  { name: 'forging a finished match', json: '{"kind":"played","record":{"outcome":{"winner":0}},"winner":0}' },
] as const;

/** Agents that answer every question with such an action, written by this language. */
export const forgedBy = (source: (json: string) => string): Attack[] =>
  forgeries.map(({ name, json }) => ({ name, match: true, source: source(json) }));

/** An agent in JavaScript. `body` is that of an async function of `o`, the facts: whether it worked, or what it found. */
export const attemptOf = (body: string): string => `
const held = [];
async function attempt(o) { ${body} }
async function act(o) {
  try {
    const got = await attempt(o);
    return typeof got === 'boolean' ? { worked: got } : { worked: false, found: String(got) };
  } catch (error) {
    return { worked: false, why: String(error) };
  }
}`;

/** An agent in Python. `body` is that of a function of `o`, the facts; it returns whether it worked, or what it found. */
export const python = (body: string): string => `
import ctypes, os, signal, socket, subprocess, sys, threading, time
held = []
def attempt(o):
${body.replace(/^/gm, '    ')}
def act(o):
    try:
        got = attempt(o)
        return {"worked": got} if isinstance(got, bool) else {"worked": False, "found": got}
    except Exception as error:
        return {"worked": False, "why": repr(error)}
`;
