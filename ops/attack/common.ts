/** Places of the host that tell something or do something. They are opened and closed, nothing is written to them. */
export const places: readonly { readonly path: string; readonly write?: true }[] = [
  { path: '/proc/self/environ' },
  { path: '/proc/kallsyms' },
  { path: '/proc/keys' },
  { path: '/proc/cmdline' },
  { path: '/proc/interrupts' },
  { path: '/proc/timer_list' },
  { path: '/proc/1/cmdline' },
  { path: '/proc/self/mounts' },
  { path: '/proc/net/tcp' },
  { path: '/proc/self/ns/net' },
  { path: '/proc/self/mem', write: true },
  { path: '/proc/sysrq-trigger', write: true },
  { path: '/proc/sys/vm/drop_caches', write: true },
  { path: '/proc/sys/kernel/core_pattern', write: true },
  { path: '/sys/kernel/notes' },
  { path: '/sys/fs/cgroup' },
  { path: '/sys/class' },
  { path: '/dev/kmsg' },
  { path: '/dev/ptmx' },
  { path: '/etc' },
  { path: '/var' },
  { path: '/home' },
  { path: '/run' },
];

/** Actions that look like verdicts. */
export const forgeries = [
  { name: 'forging the outcome', json: '{"winner":0,"scores":[1,0],"reason":"line","detail":"","seatAtFault":null}' },
  { name: "forging the other seat's fault", json: '{"kind":"fault","rule":"crash","seatAtFault":1,"winner":0}' },
  { name: 'forging a finished match', json: '{"kind":"played","record":{"outcome":{"winner":0}},"winner":0}' },
] as const;

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
