import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, stderr, stdout } from 'node:process';
import { ledgerSums, listBalances, trialBalance } from '../../projections/balances/query.js';
import { PAGE_MAX } from '../../projections/engine/page.js';
import { leaderboard } from '../../projections/leaderboards/query.js';
import { asDatabaseError } from '../../projections/sinks/database.js';
import { formatMoney } from '../../services/kernel/index.js';
import { type Arena, startArena } from '../run/arena.js';
import { LADDER_GAMES, ladderResult, playLadder } from '../run/ladder.js';
import { logName } from '../run/log.js';
import { type CashierResult, playPayments } from '../run/payments-demo.js';
import { configOf } from './command.js';
import { colour, EXIT, type Flags, print, progress } from './output.js';
import { leaderboardText } from './read.js';
import { untilSignal } from './signals.js';
import { verifyStore } from './verify.js';

/** Matches that the house plays on the first start, so that there is something to look at. */
export const FIRST_LADDER = { matches: 120, seed: 'house' } as const;

type StartFlags = Flags & { readonly ladder: boolean; readonly stripeSandbox?: number | true };

export async function start({ ladder, json = false, stripeSandbox, ...flags }: StartFlags): Promise<number> {
  const config = configOf(flags);
  const { signal, done } = untilSignal();
  const say = (text: string) => void (json ? stderr : stdout).write(`${text}\n`);
  const arena = await startArena(config, {
    ...(stripeSandbox === undefined ? {} : { sandbox: { port: stripeSandbox === true ? 4610 : stripeSandbox } }),
    onStep: (step) => stderr.isTTY && stderr.write(`\r\u001b[Kstarting ${step}`),
  });
  if (stderr.isTTY) stderr.write('\r\u001b[K');
  try {
    // Listening first: a port in use is told at once, not after a hundred matches.
    const url = await arena.listen();
    if (ladder && !signal.aborted) await firstLadder(arena, signal);
    if (!signal.aborted) {
      const position = await arena.store.lastPosition();
      const events = config.storeUrl ? undefined : position;
      const { payments, addresses } = arena;
      const clickhouse = config.analyticsPort === undefined ? undefined : await arena.analyticsAddress();
      const { grpc, play, eventstore, stripe } = addresses;
      const servers = { url, graphql: `${url}/graphql`, grpc, play, eventstore, stripe, clickhouse };
      if (json) print({ json }, { ...servers, payments, dataDir: config.dataDir, events, position }, '');
      else say(banner(arena, url, position, clickhouse));
      await done;
    }
    if (!json) say('stopping');
  } catch (error) {
    throw asDatabaseError(error) ?? error;
  } finally {
    await arena.stop();
  }
  return EXIT.ok;
}

async function firstLadder(arena: Arena, signal: AbortSignal): Promise<void> {
  const bar = progress('house ladder');
  let shown = false;
  const total = FIRST_LADDER.matches;
  await playLadder(arena, {
    ...FIRST_LADDER,
    signal,
    onProgress: (played) => {
      if (played === total && !shown) return;
      shown = true;
      bar.at(played, total);
    },
  });
  bar.end();
}

const banner = (arena: Arena, url: string, position: number, clickhouse: string | undefined) => {
  const { config, payments } = arena;
  const { grpc, play, eventstore, stripe } = arena.addresses;
  return [
    `${colour.bold('Agon')} is ready.`,
    '',
    `  GraphQL     ${colour.cyan(`${url}/graphql`)}`,
    ...(config.introspection ? [`  GraphiQL    ${colour.cyan(`${url}/graphiql`)}`] : []),
    `  health      ${url}/healthz  ${url}/readyz  ${url}/metrics`,
    ...(grpc ? [`  runners     agon runner --arena ${grpc}`] : []),
    ...(eventstore ? [`  EventStore  ${eventstore}`] : []),
    ...(play ? [`  agents      agon agent play <file> --arena ${play}`] : []),
    ...(clickhouse ? [`  ClickHouse  ${clickhouse}  (user reader, no password)`] : []),
    `  payments    ${payments}`,
    ...(stripe ? [`              its dashboard: ${colour.cyan(`${stripe}/dashboard`)}`] : []),
    `  data        ${config.dataDir}  (${config.storeUrl ? `log: ${logName(config)}, position ${position}` : `${position} events`})`,
    '',
    '  In another terminal: npx agon leaderboard, npx agon match list, npx agon log tail',
    '  Ctrl-C drains and stops.',
  ].join('\n');
};

interface DemoOptions extends Flags {
  readonly matches: number;
  readonly seed: string;
  readonly games?: readonly string[];
  readonly payments: boolean;
}

export async function demo(options: DemoOptions): Promise<number> {
  const { signal } = untilSignal();
  // It has a folder of its own, whatever log this shell works with otherwise.
  Reflect.deleteProperty(env, 'AGON_STORE');
  const dataDir = options.data ?? mkdtempSync(join(tmpdir(), 'agon-demo-'));
  const config = configOf({ data: dataDir, port: 0, analytics: false });
  const arena = await startArena(config, options.payments ? { sandbox: { port: 0 } } : {});
  const bar = progress('playing');
  let finished = false;
  try {
    const startedMs = performance.now();
    await playLadder(arena, {
      matches: options.matches,
      seed: options.seed,
      ...(options.games ? { games: options.games } : {}),
      signal,
      onProgress: (done, total) => bar.at(done, total),
    });
    bar.end();
    if (signal.aborted) return EXIT.interrupted;
    // Webhooks come over the network, so the endpoint for them has to be open.
    if (options.payments) await arena.listen();
    const paid = options.payments ? await playPayments(arena, options.seed) : undefined;
    finished = true;
    const seconds = (performance.now() - startedMs) / 1000;
    const result = await demoResult(arena, options, seconds, paid);
    print(options, result.json, result.text);
    return result.good ? EXIT.ok : EXIT.failed;
  } catch (error) {
    throw asDatabaseError(error) ?? error;
  } finally {
    await arena.stop();
    // A folder of our own making holds nothing of interest unless the demo came to its end.
    if (!finished && options.data === undefined) rmSync(dataDir, { recursive: true, force: true });
  }
}

async function demoResult(arena: Arena, options: DemoOptions, seconds: number, paid: CashierResult | undefined) {
  const { database, store, config } = arena;
  const { settled, voided } = await ladderResult(arena, options.seed, options.matches);
  const boards = await Promise.all(
    (options.games ?? LADDER_GAMES).map(
      async (game) => [game, await leaderboard(database, { game }, 50, arena.clock())] as const,
    ),
  );
  const { rows: balances } = await listBalances(database, { first: PAGE_MAX });
  const sums = Object.values(ledgerSums(await trialBalance(database)));
  const ledgerSum = sums.reduce((total, sum) => total + (sum < 0n ? -sum : sum), 0n);
  const log = await verifyStore(store);
  const json = {
    matches: options.matches,
    settled,
    voided,
    seconds: Number(seconds.toFixed(2)),
    leaderboard: Object.fromEntries(boards),
    balances,
    ...(paid ? { payments: paid } : {}),
    ledgerSum: Number(ledgerSum),
    log,
    seed: options.seed,
    dataDir: config.dataDir,
  };
  const text = [
    ...boards.map(([game, standings]) => leaderboardText(game, standings)),
    ...balances.map(
      (row) => `  ${row.account.padEnd(16)} ${formatMoney(row.balanceCents).padStart(12)} ${row.currency}`,
    ),
    '',
    ...(paid
      ? [
          `${paid.deposits} deposits, ${paid.refunds} refunds, ${paid.chargebacks} chargeback, ${paid.withdrawals} withdrawal.`,
        ]
      : []),
    `${settled} of ${options.matches} matches settled in ${seconds.toFixed(1)} s; the ledger sums to ${formatMoney(ledgerSum)}; ` +
      `${log.events} events ${log.verified ? 'verified' : 'NOT VERIFIED'}.`,
    `The data stays in ${config.dataDir}; look around with --data ${config.dataDir}, and delete it when done.`,
  ].join('\n');
  return { json, text, good: settled === options.matches && ledgerSum === 0n && log.verified };
}
