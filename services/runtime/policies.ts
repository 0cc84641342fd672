import { contexts, upcast } from '../index.js';
import type { Bus, Command, Consumer, Handled, Policy, RecordedEvent } from '../kernel/index.js';
import { definePart } from './part.js';
import { writeSide } from './write-side.js';

export const groupOfPolicy = ({ name }: Pick<Policy, 'name'>) => `policy.${name}`;

/** Every policy there is. */
export const policies: readonly Policy[] = contexts.flatMap((context) => policiesOf(context));

/** The policies of some contexts: events in, commands out. */
export const policiesOfContexts = (...names: readonly string[]) =>
  definePart({
    name: `policies of ${names.join(', ')}`,
    needs: { writeSide },
    start: async ({ writeSide: { execute } }, host) => {
      const { engines } = host;
      const [makeBus, checkpoints, telemetry] = await Promise.all([
        engines.bus(),
        engines.checkpoints(),
        host.telemetry(),
      ]);
      const bus = telemetry.bus(makeBus(checkpoints));
      for (const policy of contexts.filter(({ name }) => names.includes(name)).flatMap(policiesOf)) {
        host.follow(groupOfPolicy(policy), await runPolicy(bus, policy, execute));
      }
      return { value: undefined, stop: () => bus.close() };
    },
  });

function policiesOf({ policies }: { readonly policies?: readonly Policy[] }): readonly Policy[] {
  return policies ?? [];
}

/** Events of one stream in order, streams side by side: a slow match holds up nobody else's stake. */
export function runPolicy(
  bus: Bus,
  policy: Policy,
  execute: (command: Command) => Promise<Handled>,
): Promise<Consumer> {
  const react = async (events: readonly RecordedEvent[]) => {
    for (const event of events) for (const command of policy.react(upcast(event))) await execute(command);
  };
  const options = { group: groupOfPolicy(policy), types: policy.types, batchSize: 256, attemptsMax: 8 };
  return bus.consume(options, async (events) => {
    const streams = new Map<string, RecordedEvent[]>();
    for (const event of events) streams.set(event.stream, [...(streams.get(event.stream) ?? []), event]);
    await Promise.all([...streams.values()].map(react));
  });
}
