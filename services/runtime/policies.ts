import { upcast } from '../../projections/views.js';
import type { Bus, Command, Consumer, Handled, Policy, RecordedEvent } from '../kernel/index.js';

export const groupOfPolicy = ({ name }: Pick<Policy, 'name'>) => `policy.${name}`;

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
