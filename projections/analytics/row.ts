import type { RecordedEvent } from '../../services/kernel/index.js';

type Data = Readonly<Record<string, unknown>>;

/**
 * Columns that are taken from an event's data by the name of the field, whatever the event's type: names in the log are
 * never changed, so an event that comes into being tomorrow is charted by the fields that it shares with today's.
 */
const fields: Readonly<Record<string, readonly [column: string, read: (value: unknown) => unknown]>> = {
  matchId: ['match_id', text],
  agentId: ['agent_id', text],
  accountId: ['account_id', text],
  ownerId: ['account_id', text],
  game: ['game', text],
  currency: ['currency', text],
  reason: ['reason', text],
  runtime: ['runtime', text],
  runnerId: ['runner_id', text],
  amountCents: ['amount_cents', cents],
  stakeCents: ['stake_cents', cents],
  potCents: ['pot_cents', cents],
  rakeCents: ['rake_cents', cents],
  attempt: ['attempt', count],
  turn: ['turn', count],
  seat: ['seat', count],
  fuel: ['fuel', count],
  wallMs: ['wall_ms', amount],
  codeBytes: ['code_bytes', count],
};

const seatFields: typeof fields = {
  agentId: ['seat_agents', text],
  accountId: ['seat_accounts', text],
  score: ['seat_scores', amount],
  payoutCents: ['seat_payouts', cents],
};

const usageFields: typeof fields = {
  fuel: ['usage_fuel', count],
  peakMemoryBytes: ['usage_memory_bytes', count],
  cpuMs: ['usage_cpu_ms', amount],
  wallMs: ['usage_wall_ms', amount],
};

/**
 * An event as a row of the wide table. Takes in everything: an unknown type or a strange field is a row as well. Whatever
 * an event does not say is left out, and takes the column's default.
 */
export function rowOf(event: RecordedEvent): Record<string, unknown> {
  const { position, id, type, version, stream, revision, meta } = event;
  const row: Record<string, unknown> = {
    position,
    id,
    type,
    version,
    category: stream.slice(0, Math.max(0, stream.indexOf('-'))),
    stream,
    revision,
    time: timeText(event.time),
    actor_id: meta.actor.id,
    actor_role: meta.actor.role,
    command_id: meta.commandId,
    correlation_id: meta.correlationId,
    // ClickHouse keeps the text of an object as it stands; anything else goes as text already.
    data: isData(event.data) ? event.data : JSON.stringify(event.data),
  };
  if (isData(event.data)) takeData(event.data, row);
  return row;
}

function takeData(data: Data, row: Record<string, unknown>): void {
  take(data, row);
  if (Array.isArray(data.seats)) takeColumns(data.seats, seatFields, row);
  if (isData(data.purpose)) take(data.purpose, row);
  if (isData(data.outcome)) {
    take(data.outcome, row);
    row.winner = typeof data.outcome.winner === 'number' ? data.outcome.winner : -1;
  }
  if (isData(data.execution)) {
    row.driver = text(data.execution.driver);
    if (Array.isArray(data.execution.usage)) takeColumns(data.execution.usage, usageFields, row);
  }
}

function take(data: Data, row: Record<string, unknown>): void {
  for (const name in data) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field) row[field[0]] = field[1](data[name]);
  }
}

/** A list of objects becomes one array a field, all of one length, so that ClickHouse can take them apart side by side. */
function takeColumns(items: readonly unknown[], of: typeof fields, row: Record<string, unknown>): void {
  for (const [name, [column, read]] of Object.entries(of)) {
    row[column] = items.map((item) => read(isData(item) ? item[name] : undefined));
  }
}

const isData = (value: unknown): value is Data => typeof value === 'object' && value !== null && !Array.isArray(value);

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Amounts stay digits from end to end: a JSON number would round them. */
function cents(value: unknown): string {
  return typeof value === 'string' && /^-?\d{1,18}$/.test(value) ? value : '0';
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

function amount(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** The form that ClickHouse reads without guessing. A time that nobody can read is the beginning of time. */
function timeText(time: string): string {
  if (ISO.test(time)) return `${time.slice(0, 10)} ${time.slice(11, 23)}`;
  const ms = Date.parse(time);
  return Number.isNaN(ms) ? '1970-01-01 00:00:00.000' : timeText(new Date(ms).toISOString());
}
