import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { ProjectionStatus, Projections } from '../../projections/engine/projections.js';
import type { Committed } from '../../projections/engine/projector.js';
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

  private readonly batchEvents = new Histogram({
    name: 'agon_projection_batch_events',
    help: 'Events that a view took in with one commit.',
    labelNames: ['view'],
    buckets: [1, 4, 16, 64, 256, 1024, 4096, 16_384],
    registers: [this.registry],
  });

  private readonly poison = new Counter({
    name: 'agon_projection_errors_total',
    help: 'Events that a view could not take in, by the code of the error.',
    labelNames: ['view', 'code'],
    registers: [this.registry],
  });

  constructor(observe: () => Promise<{ position: number; lag: ReadonlyMap<string, number> }>) {
    collectDefaultMetrics({ register: this.registry });
    const position: Gauge = new Gauge({
      name: 'agon_log_position',
      help: 'Last position of the log.',
      registers: [this.registry],
      collect: async () => {
        position.set((await observe()).position);
      },
    });
    const lag: Gauge = new Gauge({
      name: 'agon_consumer_lag_events',
      help: 'Events that a consumer has not taken in yet.',
      labelNames: ['consumer'],
      registers: [this.registry],
      collect: async () => {
        for (const [consumer, events] of (await observe()).lag) lag.set({ consumer }, events);
      },
    });
  }

  readonly onHandled = (command: Command, outcome: string, ms: number): void => {
    this.commands.inc({ type: command.type, outcome });
    this.commandSeconds.observe(ms / 1000);
  };

  readonly onCommitted = ({ view, events, letters }: Committed): void => {
    this.batchEvents.observe({ view: view.name }, events);
    for (const { code } of letters) this.poison.inc({ view: view.name, code });
  };

  /** How far each view is behind, what it has put aside, and how far its rebuild is. */
  watch(projections: Pick<Projections, 'list'>): void {
    const gauge = (name: string, help: string, pick: (status: ProjectionStatus) => number) => {
      const made = new Gauge({
        name,
        help,
        labelNames: ['view'],
        registers: [this.registry],
        // A database that is away must not take the other metrics with it.
        collect: async () => {
          for (const status of await projections.list().catch(() => [])) made.set({ view: status.view }, pick(status));
        },
      });
    };
    gauge('agon_projection_lag_events', 'Events that are not in the rows that serve.', ({ lagEvents }) => lagEvents);
    gauge('agon_projection_dead_letters', 'Events that a view has put aside.', ({ deadLetters }) => deadLetters);
    gauge(
      'agon_projection_build_position',
      'How far a rebuild is; 0 without one.',
      ({ build }) => build?.position ?? 0,
    );
  }
}
