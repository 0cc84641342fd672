import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Command } from '../../services/kernel/index.js';

/** What the arena counts. */
export class Metrics {
  readonly registry = new Registry();

  private readonly commands = new Counter({
    name: 'agon_commands_total',
    help: 'Commands by type and outcome: appended, unchanged, repeated, refused.',
    labelNames: ['type', 'outcome'],
    registers: [this.registry],
  });

  private readonly commandSeconds = new Histogram({
    name: 'agon_command_seconds',
    help: 'From handle() to durable.',
    buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2],
    registers: [this.registry],
  });

  readonly matches = new Counter({
    name: 'agon_matches_played_total',
    help: 'Matches played here, by game and by the rule that ended them.',
    labelNames: ['game', 'reason'],
    registers: [this.registry],
  });

  readonly retries = new Counter({
    name: 'agon_consumer_retries_total',
    help: 'Deliveries that failed and were tried again.',
    labelNames: ['group'],
    registers: [this.registry],
  });

  constructor(observe: () => Promise<{ position: number; lag: ReadonlyMap<string, number> }>) {
    collectDefaultMetrics({ register: this.registry });
    const position = new Gauge({ name: 'agon_log_position', help: 'Last position of the log.', registers: [] });
    const lag = new Gauge({
      name: 'agon_consumer_lag_events',
      help: 'Events that a consumer has not taken in yet.',
      labelNames: ['consumer'],
      registers: [this.registry],
      collect: async () => {
        const observed = await observe();
        position.set(observed.position);
        for (const [consumer, events] of observed.lag) lag.set({ consumer }, events);
      },
    });
    this.registry.registerMetric(position);
  }

  readonly onHandled = (command: Command, outcome: string, ms: number): void => {
    this.commands.inc({ type: command.type, outcome });
    this.commandSeconds.observe(ms / 1000);
  };
}
