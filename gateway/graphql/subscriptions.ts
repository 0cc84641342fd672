import { Inject } from '@nestjs/common';
import { Args, Context, Extensions, Int, Resolver, Subscription } from '@nestjs/graphql';
import { countOpenMatches, matchById } from '../../projections/matches/query.js';
import { AgonError } from '../../services/kernel/index.js';
import type { RequestContext } from '../auth/actor.js';
import { endedIn, momentOf, spectate } from '../live/feed.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { Channel, newest, shared } from './channel.js';
import { about, maybe, objectType } from './declare.js';
import { matchOf, projectionOf } from './rows.js';
import { Match, Projection, Queue } from './types.js';

/** So many turns may be unread: whoever has more is not reading. */
const UNREAD_MAX = 256;
/** What changes all the time is told this often at most. */
const QUEUE_REST_MS = 250;
const LAG_REST_MS = 1_000;

const LiveTurn = objectType('LiveTurn', 'A turn of a match that is being played.', {
  attempt: Int,
  turn: Int,
  seat: Int,
  action: about(String, 'The action as JSON.'),
});

const LiveMoment = objectType('LiveMoment', 'What a spectator hears: a turn, or that the match is over.', {
  cursor: maybe(String, 'Sent back as `after`, goes on behind this turn.'),
  turn: maybe(LiveTurn),
  ended: maybe(Match, 'The last that is heard.'),
});

interface Live {
  readonly liveMatch: InstanceType<typeof LiveMoment>;
}

/** What a subscription gets to know besides: how to let go of somebody who does not read. */
export interface SubscriptionContext extends RequestContext {
  drop(): void;
}

/** What happens, as it happens. All of it can be read as well; none of it has to be asked for again and again. */
@Resolver()
export class Subscriptions {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  @Subscription(() => LiveMoment, { description: 'A match turn by turn, each once and in order, and its end.' })
  async liveMatch(
    @Args('matchId', { type: () => String }) matchId: string,
    @Args('after', { type: () => String, nullable: true, description: 'The last cursor that was heard.' })
    after: string | undefined,
    @Context() context: SubscriptionContext,
  ): Promise<AsyncIterableIterator<Live>> {
    const { ports } = this;
    const from = momentOf(after ?? '');
    if (!(await matchById(ports.database, matchId))) {
      throw new AgonError('ARENA.UNKNOWN_MATCH', `There is no match ${matchId}.`);
    }
    const channel = new Channel<Live>(UNREAD_MAX, context.drop);
    const ended = (position: number) => endedIn(ports, matchId, position);
    const stop = spectate(ports.live, {
      matchId,
      after: from,
      delayMs: ports.spectatorDelayMs,
      ended,
      tell: (moment) => {
        if (moment.kind === 'end') return void this.tellEnd(matchId, channel);
        const { attempt, turn } = moment;
        const shown = { attempt, turn: turn.turn, seat: turn.seat, action: JSON.stringify(turn.action) };
        channel.push({ liveMatch: { cursor: `${attempt}.${turn.turn}`, turn: shown, ended: null } });
      },
    });
    return channel.onStop(stop);
  }

  @Extensions({ cost: 20 })
  @Subscription(() => Queue, { description: 'How many matches wait and are played, whenever that changes.' })
  queue(@Context() context: SubscriptionContext): AsyncIterableIterator<object> {
    const channel = new Channel<object>(UNREAD_MAX, context.drop);
    return channel.onStop(this.sharedQueue((queue) => channel.push({ queue })));
  }

  @Extensions({ cost: 50 })
  @Subscription(() => [Projection], { description: 'How far the views are, whenever that changes.' })
  projections(@Context() context: SubscriptionContext): AsyncIterableIterator<object> {
    const channel = new Channel<object>(UNREAD_MAX, context.drop);
    return channel.onStop(this.sharedProjections((projections) => channel.push({ projections })));
  }

  /** Counted once for everybody who listens, and only when the read side has what the log said. */
  private readonly sharedQueue = shared<object>((tell) => {
    const { database, live, visible, onInternalError: onError } = this.ports;
    let position = 0;
    const look = async () => {
      await visible(position);
      return countOpenMatches(database);
    };
    const on = (changed: () => void) =>
      live.onQueue((moved) => {
        position = moved;
        changed();
      });
    return newest(look, tell, { restMs: QUEUE_REST_MS, onError, on });
  });

  private readonly sharedProjections = shared<object>((tell) => {
    const { projections, onInternalError: onError } = this.ports;
    const look = async () => (await projections.list()).map(projectionOf);
    return newest(look, tell, { restMs: 0, onError, on: every(LAG_REST_MS) });
  });

  private async tellEnd(matchId: string, channel: Channel<Live>): Promise<void> {
    try {
      const row = await matchById(this.ports.database, matchId);
      if (row) channel.push({ liveMatch: { cursor: null, turn: null, ended: matchOf(row) } });
    } catch (error) {
      this.ports.onInternalError(error);
    }
    channel.end();
  }
}

/** A view falls behind and catches up without anything being said, so it is looked at. */
const every = (restMs: number) => (changed: () => void) => {
  const timer = setInterval(changed, restMs);
  return () => clearInterval(timer);
};
