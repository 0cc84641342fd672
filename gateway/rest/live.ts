import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { matchById } from '../../projections/matches/query.js';
import { AgonError, isAgonError, type RecordedEvent } from '../../services/kernel/index.js';
import { assertStaffReads, contextOf } from '../auth/actor.js';
import { endedIn, type Moment, momentOf, spectate } from '../live/feed.js';
import type { Admission, Listener } from '../live/listener.js';
import type { GatewayPorts } from '../ports.js';
import { defineRoute, type Heard, type RestContext, type Shape } from './route.js';
import { matchId } from './schemas.js';

const lastId = { 'last-event-id': z.string().max(40).optional().describe('The id of the last event that was seen.') };
const stream = {
  type: 'text/event-stream',
  description: 'Server-sent events; as a WebSocket, messages of JSON with id, event and data.',
};
/** While what was read from the log is more than this, no more is read. */
const AHEAD_BYTES = 64 * 1024;
const STALLED_MS = 10_000;
const LOOK_MS = 25;

const matchParams = { matchId };
const matchQuery = {
  after: z
    .string()
    .regex(/^(\d{1,6}\.\d{1,6})?$/, 'must be the id of an event of this feed')
    .optional()
    .describe('The id of the last event that was seen, as attempt.turn.'),
};
const logQuery = {
  after: z
    .string()
    .regex(/^\d{1,15}$/, 'must be a position of the log')
    .optional()
    .describe('A position of the log; only what comes from now on when left out.'),
  type: z
    .array(z.string().regex(/^[A-Za-z]{1,60}$/))
    .max(20)
    .optional()
    .describe('Only events of these types.'),
};

export const liveRoutes = [
  defineRoute({
    id: 'watchMatch',
    path: '/v1/matches/{matchId}/live',
    access: 'public',
    summary: 'A match as it is played: `turn` for each turn, in order and each once, then `end`.',
    params: matchParams,
    query: matchQuery,
    headers: lastId,
    answer: stream,
    admit: async ({ params, query, request }, { ports, listeners }) => {
      momentOf(lastOf({ query, request }));
      if (!(await matchById(ports.database, params.matchId))) {
        throw new AgonError('ARENA.UNKNOWN_MATCH', `There is no match ${params.matchId}.`);
      }
      listeners.assertRoom(request);
    },
    handle: (asked, rest) => watch(rest.listeners.bySse(asked, asked.reply), asked, rest.ports),
    socket: (socket, asked, rest) => watch(rest.listeners.bySocket(asked, socket), asked, rest.ports),
  }),
  defineRoute({
    id: 'followLog',
    path: '/v1/events',
    summary:
      'The log as it is written, for staff. Ids are positions, so a feed that broke off goes on behind its last.',
    query: logQuery,
    headers: lastId,
    answer: stream,
    admit: async ({ query, request, context }, { ports, listeners }) => {
      assertStaffReads(await context());
      const id = lastOf({ query, request });
      // Said while there still is an answer to say it in: a feed could only end.
      await ports.log.readAll({ after: positionOf(id) ?? 0, limit: 1 }).catch((error: unknown) => {
        throw isAgonError(error, 'STORE.BAD_POSITION') ? badId(id) : error;
      });
      listeners.assertRoom(request);
    },
    handle: (asked, rest) => follow(rest.listeners.bySse(staffIn(asked, rest), asked.reply), asked, rest),
    socket: (socket, asked, rest) => follow(rest.listeners.bySocket(staffIn(asked, rest), socket), asked, rest),
  }),
];

/** A browser sends the last id by itself; it is newer than the address that the page was opened with. */
function lastOf({ query, request }: { query: { after?: string | undefined }; request: Heard['request'] }): string {
  const { 'last-event-id': header } = request.headers;
  return (Array.isArray(header) ? header[0] : header) ?? query.after ?? '';
}

/** Looked up anew each time: who may read the log now may not in a minute. */
const staffIn = ({ request }: Pick<Heard, 'request'>, { ports }: RestContext): Admission => ({
  request,
  recheck: async () => assertStaffReads(await contextOf(ports, { headers: { ...request.headers } })),
});

function watch(
  listener: Listener,
  { params, query, request }: Heard<typeof matchParams, typeof matchQuery>,
  ports: GatewayPorts,
): undefined {
  const tell = (moment: Moment) => {
    if (moment.kind === 'turn') {
      return listener.tell('turn', JSON.stringify(moment.turn), `${moment.attempt}.${moment.turn.turn}`);
    }
    const { turns, ...match } = moment.match;
    listener.tell('end', JSON.stringify({ ...match, turns: turns.length }));
    listener.end();
  };
  const stop = spectate(ports.live, {
    matchId: params.matchId,
    after: momentOf(lastOf({ query, request })),
    delayMs: ports.spectatorDelayMs,
    ended: (position) => endedIn(ports, params.matchId, position),
    tell,
  });
  listener.onLeave(stop);
}

function positionOf(id: string): number | undefined {
  if (id !== '' && !/^\d{1,15}$/.test(id)) throw badId(id);
  return id === '' ? undefined : Number(id);
}

const badId = (id: string) =>
  new AgonError('QUERY.BAD_CURSOR', `${JSON.stringify(id.slice(0, 80))} is not the id of an event of this feed.`);

async function follow(listener: Listener, { query, request }: Heard<Shape, typeof logQuery>, { ports }: RestContext) {
  const after = positionOf(lastOf({ query, request })) ?? (await ports.log.lastPosition());
  const wanted = query.type && new Set(query.type);
  let left = false;
  const tell = (event: RecordedEvent) => listener.tell(event.type, JSON.stringify(event), `${event.position}`);
  const subscription = ports.log.subscribe({ after, batchSize: 64 }, async (events) => {
    for (const event of events) {
      if (left) return;
      if (!wanted || wanted.has(event.type)) tell(event);
      // The past is read as fast as it is taken; who takes nothing for long is not there any more.
      for (let waitedMs = 0; listener.unread() > AHEAD_BYTES && !left; waitedMs += LOOK_MS) {
        if (waitedMs >= STALLED_MS) return listener.end();
        await sleep(LOOK_MS);
      }
    }
  });
  subscription.done.catch(() => listener.end());
  listener.onLeave(() => {
    left = true;
    void subscription.stop();
  });
}
