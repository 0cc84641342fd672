import { exit, stderr, stdout } from 'node:process';
import { whenNpmEnds } from './npm.js';
import { EXIT } from './output.js';

/** Some launchers pass on a Ctrl-C that the terminal has told us already: what comes so soon is the same signal. */
const SAME_SIGNAL_MS = 500;

/**
 * Runs until it is told to stop, by Ctrl-C, SIGTERM, the terminal's closing, or the end of the npm that started it; then
 * drains. A second Ctrl-C or SIGTERM does not wait.
 */
export function untilSignal(): { signal: AbortSignal; done: Promise<void> } {
  const stopping = new AbortController();
  let stoppedMs = 0;
  const done = new Promise<void>((resolve) => {
    const stop = () => {
      if (stopping.signal.aborted) return;
      stoppedMs = performance.now();
      stopping.abort();
      resolve();
    };
    const onSignal = () => {
      if (stopping.signal.aborted && performance.now() - stoppedMs > SAME_SIGNAL_MS) exit(EXIT.interrupted);
      stop();
    };
    process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
    // Shells, terminals and npm each send it when the terminal closes: nobody is in a hurry who sends it again.
    process.on('SIGHUP', stop);
    whenNpmEnds(stop);
    // Whoever reads us has gone, or there is no terminal any more: that is no reason to end without draining.
    stdout.removeAllListeners('error').on('error', stop);
    stderr.on('error', () => {});
  });
  return { signal: stopping.signal, done };
}
