import { spawn } from 'node:child_process';
import { freePort, Server } from './server.js';
import { cached, whyMissing } from './tools.js';

const READY_MS = 30_000;
/** The same version and place as in stripe-mock.sh, which puts it there. */
const binary = () => cached('stripe-mock-v0.203.0');

/** Why Stripe's own test server cannot run here, if it cannot. */
export const whyNoStripeMock = () => whyMissing(binary(), 'stripe-mock.sh puts it there, with Go');

/** Starts it on a free port of this machine. It knows Stripe's schema, and refuses calls that do not fit. */
export async function startStripeMock(): Promise<{ url: string; stop(): Promise<void> }> {
  const address = `127.0.0.1:${await freePort()}`;
  const server = new Server(() => spawn(binary(), ['-http-addr', address], { stdio: 'ignore' }));
  await server.ready(() => fetch(`http://${address}`), READY_MS);
  return { url: `http://${address}`, stop: () => server.stop() };
}
