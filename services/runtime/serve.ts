import { setTimeout as sleep } from 'node:timers/promises';
import type { Serving } from '../../proto/serve.js';
import type { Host } from './host.js';
import type { Running } from './part.js';

const BEAT_MS = 50;

/** Something that one process at a time has, and can be asked about once it has heard what the log held. */
export interface Leading {
  /** False while another process has it; left out where there is no other. */
  active?(): boolean;
  /** How far it has heard. */
  heard(): number;
  /** Another process took over: what is known here is not to be relied on any more. */
  forget(): void;
}

/**
 * Keeps a server open while this process leads. At a server without what it serves from whoever comes would wait for ever:
 * it closes when another process takes over, and opens again once everything was heard anew. Resolves when it opens for
 * the first time.
 */
export async function serveWhileLeader<S extends Serving>(
  host: Pick<Host, 'say' | 'signal' | 'giveUp' | 'engines'>,
  name: string,
  leading: Leading,
  open: () => Promise<S>,
): Promise<Running<{ readonly address: string }>> {
  const { signal } = host;
  let server: S | undefined;
  const beat = () => sleep(BEAT_MS, undefined, { signal });
  const isActive = () => leading.active?.() !== false;
  const says = (text: string) =>
    host.say(name, async () => {
      throw new Error(text);
    });

  /** Those who come back are asked what they still hold, which only somebody who has heard everything can do. */
  async function untilHeard(): Promise<void> {
    const known = await (await host.engines.log()).lastPosition();
    host.say(name, async () => {
      if (!isActive()) throw new Error('stands by: another process has the queue');
      throw new Error(`the queue has heard ${leading.heard()} of ${known}`);
    });
    while (!isActive() || leading.heard() < known) await beat();
  }

  async function lead(opened: (address: string) => void): Promise<never> {
    for (;;) {
      await untilHeard();
      const serving = await open();
      server = serving;
      host.say(name, async () => serving.address);
      opened(serving.address);
      while (isActive()) await beat();
      says('closes: another process has the queue');
      await serving.close();
      server = undefined;
      leading.forget();
    }
  }

  let leads: Promise<void> = Promise.resolve();
  let isOpen = false;
  const address = await new Promise<string>((resolve, reject) => {
    const opened = (at: string) => {
      isOpen = true;
      resolve(at);
    };
    // What never opened is the start's to tell; what ends later cannot go on.
    leads = lead(opened).catch((error: unknown) => (isOpen ? host.giveUp(error, name) : reject(error)));
  });
  const stop = async () => {
    await leads;
    await server?.close();
  };
  return { value: { address }, stop };
}
