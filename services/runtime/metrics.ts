import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Seen } from '../../gateway/observe.js';
import type { CommitReport as Committed } from '../../projections/engine/projector.js';
import type { RunnerOptions } from '../../sandbox-runner/index.js';
import type { Command, RateLimits, SealedEvent } from '../kernel/index.js';
import type { PaymentProvider } from '../payments/index.js';
import type { DeliveryReport } from './observe.js';
import { Timings } from './timings.js';

/** From a thousandth of a second to a minute: medians and tails can both be read off. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];
const VALUES_MAX = 256;

/** Keeps a label to so many values: what comes later is counted together, so that nobody can fill the memory. */
export function bounded(max = VALUES_MAX): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= max || !/^[\w.:/ *-]{1,120}$/.test(value)) return 'other';
    known.add(value);
    return value;
  };
}

/** What the arena counts. */
export class Metrics {
  readonly registry = new Registry();
  private readonly operation = bounded();
  private readonly code = bounded();

  private readonly requests = this.seconds(
    'agon_request_seconds',
    'Requests by door (http, graphql, grpc), operation and outcome: ok, refused, failed.',
    ['door', 'operation', 'outcome'],
  );
  private readonly streams = this.count(
    'agon_streams_ended_total',
    'Streams that ended, by door, operation and outcome.',
    ['door', 'operation', 'outcome'],
  );
  private readonly problems = this.count('agon_problems_total', 'Errors that callers were told, by door and code.', [
    'door',
    'code',
  ]);
  private readonly refusals = this.count(
    'agon_rate_limited_total',
    'Requests that a rate limit refused, by what was limited: address, actor.',
    ['what'],
  );

  private readonly commands = this.tally(
    'agon_commands_total',
    'Commands by type and outcome: appended, unchanged, repeated, refused.',
    ['type', 'outcome'],
  );
  private readonly commandSeconds = this.seconds('agon_command_seconds', 'From handle() to durable, by type.', [
    'type',
  ]);
  private readonly appendSeconds = this.seconds('agon_append_seconds', 'How long the log took for an append.');
  private readonly events = this.tally('agon_events_total', 'Events appended here, by type.', ['type']);

  readonly matches = this.count(
    'agon_matches_played_total',
    'Matches played here, by game and by the rule that ended them.',
    ['game', 'reason'],
  );
  private readonly played = this.seconds('agon_sandbox_match_seconds', 'How long matches were played, by game.', [
    'game',
  ]);

  readonly retries = this.count('agon_consumer_retries_total', 'Deliveries that failed and were tried again.', [
    'group',
  ]);
  private readonly delivered = this.seconds('agon_consumer_batch_seconds', 'How long a group took for a batch.', [
    'group',
  ]);
  private readonly delays = this.seconds(
    'agon_consumer_delay_seconds',
    'From the time of an event to the end of its delivery, by group; of the last event of each batch.',
    ['group'],
  );
  private readonly batchEvents = new Histogram({
    name: 'agon_projection_batch_events',
    help: 'Events that a view took in with one commit.',
    labelNames: ['view'],
    buckets: [1, 4, 16, 64, 256, 1024, 4096, 16_384],
    registers: [this.registry],
  });
  private readonly poison = this.count(
    'agon_projection_errors_total',
    'Events that a view could not take in, by the code of the error.',
    ['view', 'code'],
  );

  private readonly payments = this.seconds(
    'agon_payment_call_seconds',
    "Calls of the payment provider, and webhooks from it ('readWebhook'), by outcome: ok, failed.",
    ['call', 'outcome'],
  );

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    // Without a case yet, there is a zero: an alert on the first one sees it grow.
    for (const what of ['address', 'actor']) this.refusals.inc({ what }, 0);
  }

  /** A figure that is looked up when somebody asks. What cannot be looked up is left out, and takes nothing else with it. */
  gauge(name: string, help: string, look: () => number | Promise<number>): void {
    this.lookedUp(name, help, [], async () => [[undefined, await look()]]);
  }

  /** One for each value of a label. */
  gauges(name: string, help: string, label: string, look: () => Promise<Iterable<readonly [string, number]>>): void {
    this.lookedUp(name, help, [label], look);
  }

  readonly onSeen = ({ door, operation, outcome, stream, ms }: Seen): void => {
    const known = this.operation(operation);
    if (stream) this.streams.inc({ door, operation: known, outcome });
    else this.requests.observe(ms / 1000, door, known, outcome);
  };

  readonly onProblem = (door: Seen['door'], code: string): void => this.problems.inc({ door, code: this.code(code) });

  readonly onHandled = (command: Command, outcome: string, ms: number): void => {
    this.commands(command.type, outcome);
    this.commandSeconds.observe(ms / 1000, command.type);
  };

  readonly onAppended = (_command: Command, events: readonly SealedEvent[], ms: number): void => {
    this.appendSeconds.observe(ms / 1000);
    for (const { type } of events) this.events(type);
  };

  readonly onDelivered = ({ group, events, ms, endedMs }: DeliveryReport): void => {
    this.delivered.observe(ms / 1000, group);
    const last = events.at(-1);
    if (last) this.delays.observe(Math.max(0, (endedMs - Date.parse(last.time)) / 1000), group);
  };

  readonly onCommitted = ({ view, events, letters }: Committed): void => {
    this.batchEvents.observe({ view: view.name }, events);
    for (const { code } of letters) this.poison.inc({ view: view.name, code: this.code(code) });
  };

  /** The same limits, counting what they refuse. */
  limits(limits: RateLimits): RateLimits {
    return {
      take: async (name, rate, tokens) => {
        const taken = await limits.take(name, rate, tokens);
        if (!taken.ok) this.refusals.inc({ what: name.startsWith('address:') ? 'address' : 'actor' });
        return taken;
      },
    };
  }

  /** The same pool, timing its matches. */
  readonly pool = <P extends RunnerOptions['pool']>(pool: P): P =>
    timed(pool, ['play'], (_call, ms, [job]) => this.played.observe(ms / 1000, (job as { game: string }).game));

  /** The same provider, timing its calls. */
  provider<P extends PaymentProvider | undefined>(provider: P): P {
    if (!provider) return provider;
    return timed(provider, CALLS, (call, ms, _args, ok) =>
      this.payments.observe(ms / 1000, call, ok ? 'ok' : 'failed'),
    );
  }

  private lookedUp(
    name: string,
    help: string,
    labelNames: readonly string[],
    look: () => Promise<Iterable<readonly [string | undefined, number]>>,
  ): void {
    const [label] = labelNames;
    // Whoever starts again looks it up anew.
    this.registry.removeSingleMetric(name);
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames,
      registers: [this.registry],
      collect: async () => {
        const found = await look().catch(() => []);
        gauge.reset();
        for (const [value, figure] of found) {
          if (label === undefined || value === undefined) gauge.set(figure);
          else gauge.set({ [label]: value }, figure);
        }
      },
    });
  }

  private count<L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  /** Counts without a look at the registry until somebody asks: a command may have hundreds of events. */
  private tally(name: string, help: string, labelNames: readonly string[]): (...values: string[]) => void {
    const counts = new Map<string, number>();
    const counter: Counter = new Counter({
      name,
      help,
      labelNames,
      registers: [this.registry],
      collect: () => {
        counter.reset();
        for (const [key, count] of counts) {
          const values = key.split(' ');
          counter.inc(Object.fromEntries(labelNames.map((label, i) => [label, values[i] ?? ''])), count);
        }
      },
    });
    return (...values) => {
      const key = values.length === 1 ? (values[0] ?? '') : values.join(' ');
      counts.set(key, (counts.get(key) ?? 0) + 1);
    };
  }

  private seconds(name: string, help: string, labelNames: readonly string[] = []): Timings {
    return new Timings(name, help, labelNames, SECONDS, this.registry);
  }
}

const CALLS = [
  'openCheckout',
  'openPayoutAccount',
  'onboardingUrl',
  'findTransfer',
  'createTransfer',
  'findRefund',
  'createRefund',
  'endPlan',
  'readWebhook',
] as const satisfies readonly (keyof PaymentProvider)[];

type CallListener = (call: string, ms: number, args: readonly unknown[], ok: boolean) => void;

/** The same object, with these calls timed. The object's own fields stay its own. */
function timed<T extends object>(target: T, calls: readonly string[], tell: CallListener): T {
  return new Proxy(target, {
    get: (_target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (typeof name !== 'string' || !calls.includes(name)) return value.bind(target);
      return async (...args: unknown[]) => {
        const startedMs = performance.now();
        let ok = false;
        try {
          const result: unknown = await value.apply(target, args);
          ok = true;
          return result;
        } finally {
          tell(name, performance.now() - startedMs, args, ok);
        }
      };
    },
  });
}
