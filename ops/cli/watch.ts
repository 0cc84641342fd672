import { stdout } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { gameNamed, isLegal } from '../../sandbox-runner/index.js';
import { AgonError } from '../../services/kernel/index.js';
import { holderOf } from '../../services/runtime/data-folder.js';
import { accessOf } from './login.js';
import { colour, EXIT, type OutputOptions, toJson } from './output.js';
import { ask, refused } from './remote.js';

interface WatchedMatch {
  readonly matchId: string;
  readonly game: string;
  readonly seats: readonly { readonly agentId: string }[];
}

interface SeenTurn {
  readonly turn: number;
  readonly seat: number;
  readonly action: unknown;
}

interface LiveEvent {
  readonly id: string;
  readonly event: string;
  readonly data: Record<string, unknown>;
}

const BACKOFF_MS = { first: 200, max: 5_000 };

/** Shows a match as it is played, and how it ended. A line a turn where there is no terminal. */
export async function watchMatch(dataDir: string, given: string, options: OutputOptions): Promise<number> {
  const { url } = await accessOf(dataDir);
  const isLocal = url === holderOf(dataDir)?.url;
  const match = await matchNamed(dataDir, given);
  const screen = screenOf(match, options);
  let last = '';
  for (let failures = 0; ; ) {
    try {
      for await (const heard of eventsOf(`${url}/v1/matches/${match.matchId}/live`, last)) {
        failures = 0;
        last = heard.id || last;
        if (screen.show(heard)) return EXIT.ok;
      }
      failures += 1;
    } catch (error) {
      if (error instanceof AgonError) throw error;
      failures += 1;
    }
    if (isLocal && !holderOf(dataDir)) throw new AgonError('ARENA.NOT_RUNNING', `The arena on ${dataDir} has stopped.`);
    // The stream broke off; what was seen is not shown again.
    await sleep(Math.min(BACKOFF_MS.max, BACKOFF_MS.first * 2 ** Math.min(failures, 10)));
  }
}

async function matchNamed(dataDir: string, given: string): Promise<WatchedMatch> {
  const fields = '{ matchId game seats { agentId } }';
  const matches = await ask<{ nodes: WatchedMatch[] }>(dataDir, 'matches(first: Int)', `{ nodes ${fields} }`, {
    first: 200,
  });
  const found = matches.nodes.filter(({ matchId }) => given === 'latest' || matchId.startsWith(given));
  const [first] = found;
  if (first && (given === 'latest' || found.length === 1)) return first;
  if (first)
    throw new AgonError('ARENA.AMBIGUOUS_MATCH', `${found.length} matches begin with "${given}"; say more of it.`);
  const match = await ask<WatchedMatch | null>(dataDir, 'match(matchId: String!)', fields, { matchId: given });
  if (match) return match;
  throw new AgonError('ARENA.UNKNOWN_MATCH', `There is no match ${given}. "agon match list" shows the newest.`);
}

/** Server-sent events, from after the last that was seen. */
async function* eventsOf(url: string, last: string): AsyncGenerator<LiveEvent> {
  const response = await fetch(url, { headers: last === '' ? {} : { 'last-event-id': last } });
  if (!response.ok || !response.body) return await refused(response);
  let text = '';
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + piece).split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = new Map(block.split('\n').map((line) => line.split(/: (.*)/s, 2) as [string, string]));
      const data = fields.get('data');
      if (data !== undefined)
        yield { id: fields.get('id') ?? '', event: fields.get('event') ?? '', data: JSON.parse(data) };
    }
  }
}

/** Draws what is heard. The board is drawn while the match goes on only where its start does not depend on the seed. */
export function screenOf({ matchId, game: name, seats }: WatchedMatch, options: OutputOptions) {
  const game = gameNamed(name);
  const start = () => game.setup('', seats.length);
  const open = game.render(start()) === game.render(game.setup('another', seats.length));
  let state = start();
  let attempt = '';
  const title = `${colour.bold(name)}  ${matchId}  ${seats.map(({ agentId }) => agentId).join(' against ')}`;
  if (!options.json) stdout.write(`${title}\n`);

  const draw = ({ turn, seat, action }: SeenTurn) => {
    const line = `turn ${turn}  ${seats[seat]?.agentId ?? `seat ${seat}`} plays ${JSON.stringify(action)}`;
    const parsed = game.parse(action);
    if (!open || parsed === undefined || !isLegal(game, state, parsed)) return stdout.write(`${line}\n`);
    state = game.apply(state, parsed);
    if (!stdout.isTTY) return stdout.write(`${line}\n`);
    // From the top of the screen: a board that stays in its place can be followed.
    return stdout.write(`\u001b[H\u001b[J${title}\n\n${game.render(state)}\n\n${colour.dim(line)}\n`);
  };

  return {
    /** Whether that was the last. */
    show({ id, event, data }: LiveEvent): boolean {
      const [of = ''] = id.split('.');
      if (event === 'turn' && of !== attempt) {
        attempt = of;
        state = start();
      }
      if (options.json) stdout.write(`${toJson({ event, id, ...data })}\n`);
      else if (event === 'turn') draw(data as unknown as SeenTurn);
      else if (event === 'end') stdout.write(`${endOf(data, seats)}\n`);
      return event === 'end';
    },
  };
}

function endOf({ status, reason, winner }: Record<string, unknown>, seats: WatchedMatch['seats']): string {
  const won = typeof winner === 'number' ? seats[winner]?.agentId : undefined;
  const text = won ? `${colour.green(won)} won` : status === 'settled' ? 'a draw' : 'nobody won';
  return `${status}: ${text} (${reason})`;
}
