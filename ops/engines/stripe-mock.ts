import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { createInterface } from 'node:readline';

/** The same version and place as in stripe-mock.sh, which puts it there. */
const VERSION = 'v0.203.0';
const binary = () => join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'agon', `stripe-mock-${VERSION}`);

/** Why Stripe's own test server cannot run here, if it cannot. */
export const whyNoStripeMock = (): string | undefined =>
  existsSync(binary()) ? undefined : `${binary()} is missing; ops/engines/stripe-mock.sh puts it there, with Go`;

/** Starts it on a free port of this machine. It knows Stripe's schema, and refuses calls that do not fit. */
export async function startStripeMock(): Promise<{ url: string; stop(): Promise<void> }> {
  const child = spawn(binary(), ['-http-addr', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<never>((_resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`stripe-mock ended with ${code}.`)));
  });
  ended.catch(() => {});
  const address = new Promise<string>((resolve) => {
    createInterface(child.stdout).on('line', (line) => {
      const found = /HTTP at address: (127\.0\.0\.1:\d+)/.exec(line);
      if (found?.[1]) resolve(found[1]);
    });
  });
  child.stderr.resume();
  return {
    url: `http://${await Promise.race([address, ended])}`,
    stop: async () => {
      child.kill();
      await ended.catch(() => {});
    },
  };
}
