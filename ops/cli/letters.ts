import type { DeadLetter } from '../../services/kernel/index.js';
import type { LetterFlags } from './bus-commands.js';
import { colour, EXIT, print, table } from './output.js';
import { askArena } from './remote.js';

const FIELDS = 'group position eventId attempts code message';

/** What the policies of a running arena gave up on. */
export async function showPolicyLetters(dataDir: string, flags: LetterFlags): Promise<number> {
  const query = `query ($group: String) { busLetters(group: $group) { ${FIELDS} } }`;
  const { busLetters } = await askArena<{ busLetters: DeadLetter[] }>(dataDir, query, { group: flags.group ?? null });
  print(flags, busLetters, busLetters.length === 0 ? 'No dead letters.' : lettersText(busLetters));
  return EXIT.ok;
}

/** Hands them out again. Exits 1 if one of them fails again. */
export async function replayPolicyLetters(dataDir: string, flags: LetterFlags): Promise<number> {
  const mutation = `mutation ($group: String, $eventId: String) { replayBusLetters(group: $group, eventId: $eventId)
    { done { ${FIELDS} } left { ${FIELDS} } } }`;
  const which = { group: flags.group ?? null, eventId: flags.event ?? null };
  const { replayBusLetters: replayed } = await askArena<{
    replayBusLetters: { done: DeadLetter[]; left: DeadLetter[] };
  }>(dataDir, mutation, which);
  const { done, left } = replayed;
  const text = [
    done.length + left.length === 0 ? 'No dead letters.' : `${colour.green('done')}: ${done.length}`,
    ...(left.length > 0 ? [`${colour.red('failed again')}: ${left.length}`, lettersText(left)] : []),
  ];
  print(flags, replayed, text.join('\n'));
  return left.length === 0 ? EXIT.ok : EXIT.failed;
}

function lettersText(letters: readonly DeadLetter[]): string {
  const rows = letters.map(({ group, position, attempts, code, message, eventId }) => [
    group,
    `${position}`,
    `${attempts}`,
    code,
    message,
    eventId,
  ]);
  const head = ['group', 'position', 'attempts', 'error', '', 'id'];
  return table(head, rows, ['left', 'right', 'right', 'left', 'left', 'left']);
}
