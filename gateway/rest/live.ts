import { Controller, Get, Headers, Inject, Param, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { matchById, turnsOf } from '../../projections/matches/query.js';
import { AgonError } from '../../services/kernel/index.js';
import { type EndedMatch, type Moment, spectate } from '../live/feed.js';
import { type GatewayPorts, PORTS } from '../ports.js';

const SPECTATORS_MAX = 2_000;
/** Whoever leaves this much unread is not reading. */
const UNREAD_BYTES_MAX = 256 * 1024;
/** Proxies close what is silent for long. */
const BEAT_MS = 15_000;

/** Matches as they are played, for browsers and scripts. */
@Controller('v1/matches')
export class LiveController {
  #spectators = 0;

  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  /**
   * Server-sent events: `turn` for each turn, then `end`. The id of an event, sent back as Last-Event-ID or `after`, goes
   * on where the stream broke off.
   */
  @Get(':matchId/live')
  async live(
    @Param('matchId') matchId: string,
    @Headers('last-event-id') lastId: string | undefined,
    @Query('after') after: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const from = momentOf(after ?? lastId ?? '');
    if (!(await matchById(this.ports.database, matchId))) {
      throw new AgonError('ARENA.UNKNOWN_MATCH', `There is no match ${matchId}.`);
    }
    if (this.#spectators >= SPECTATORS_MAX) {
      throw new AgonError('LIVE.FULL', `${SPECTATORS_MAX} spectators are all this gateway takes. Try again later.`);
    }
    this.#spectators += 1;
    const { raw } = reply.hijack();
    const write = (text: string) => {
      raw.write(text);
      // Dropped, not slowed down for: it comes back with its last id and misses nothing.
      if (raw.writableLength > UNREAD_BYTES_MAX) raw.destroy();
    };
    const tell = (moment: Moment) => {
      write(eventOf(moment));
      if (moment.kind === 'end') raw.end();
    };
    const kind = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' };
    raw.writeHead(200, { ...(reply.getHeaders() as Record<string, string>), ...kind });
    write(': what happens in the match\n\n');
    const beat = setInterval(() => write(': still here\n\n'), BEAT_MS);
    const ended = (position: number) => this.#ended(matchId, position);
    const stop = spectate(this.ports.live, { matchId, after: from, delayMs: this.ports.spectatorDelayMs, ended, tell });
    request.raw.socket.setNoDelay(true);
    raw.once('close', () => {
      this.#spectators -= 1;
      clearInterval(beat);
      stop();
    });
  }

  async #ended(matchId: string, position: number): Promise<EndedMatch | undefined> {
    const { database, visible } = this.ports;
    await visible(position);
    const match = await matchById(database, matchId);
    if (!match || match.endedAt === null) return undefined;
    const turns = (await turnsOf(database, [matchId])).map(({ turn, seat, action }) => {
      return { turn, seat, action: JSON.parse(action) as unknown };
    });
    const { status, reason, winner, attempts } = match;
    return { status, reason, winner, attempts, turns };
  }
}

/** @example momentOf('2.14') // the fourteenth turn of the second attempt */
function momentOf(id: string): { attempt: number; turn: number } {
  if (id === '') return { attempt: 0, turn: 0 };
  const [, attempt, turn] = /^(\d{1,6})\.(\d{1,6})$/.exec(id) ?? [];
  if (attempt === undefined) throw new AgonError('QUERY.BAD_CURSOR', `"${id}" is not the id of an event of this feed.`);
  return { attempt: Number(attempt), turn: Number(turn) };
}

function eventOf(moment: Moment): string {
  if (moment.kind === 'turn') {
    return `id: ${moment.attempt}.${moment.turn.turn}\nevent: turn\ndata: ${JSON.stringify(moment.turn)}\n\n`;
  }
  const { turns, ...match } = moment.match;
  return `event: end\ndata: ${JSON.stringify({ ...match, turns: turns.length })}\n\n`;
}
