import { exit } from 'node:process';
import { EXIT } from './output.js';

/** Runs until a signal comes, then drains. A second signal does not wait. */
export function untilSignal(): { signal: AbortSignal; done: Promise<void> } {
  const stopping = new AbortController();
  const done = new Promise<void>((resolve) => {
    const onSignal = () => {
      if (stopping.signal.aborted) exit(EXIT.interrupted);
      stopping.abort();
      resolve();
    };
    process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  });
  return { signal: stopping.signal, done };
}
