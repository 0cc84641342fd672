import { writeFileSync } from 'node:fs';
import { env, exit, stdout } from 'node:process';
import { newProgram, runProgram } from '../harness/command-line.js';
import { type Fault, faults } from './faults/index.js';
import { Lane } from './faults/lane.js';
import { judge, type Verdict, whyUnfitToJudge } from './faults/verdict.js';

interface Judgement {
  readonly fault: Fault;
  readonly verdict: Verdict;
}

const say = (text: string) => stdout.write(`${text}\n`);

/** Judges the faults that one spec file guards, after a look at whether that file can judge. */
async function judgeAll(lane: Lane, spec: string, group: readonly Fault[]): Promise<Judgement[]> {
  const startedMs = performance.now();
  const unfit = await verdictOf(async () => whyUnfitToJudge((await lane.run(spec)).run));
  say(`baseline    ${spec} (${secondsSince(startedMs)})`);
  const judged: Judgement[] = [];
  for (const fault of group) {
    const faultStartedMs = performance.now();
    const tried = async () => {
      const { run, planted } = await lane.run(fault.spec, fault);
      return judge(run, planted);
    };
    const verdict = unfit ?? (await verdictOf(tried));
    const why = verdict.kind === 'killed' ? '' : `: ${verdict.why}`;
    say(`${verdict.kind.padEnd(11)} ${fault.name} (${secondsSince(faultStartedMs)})${why}`);
    judged.push({ fault, verdict });
  }
  return judged;
}

/** Vitest falling over is no verdict about a fault, and keeps no other from being tried. */
const verdictOf = <T extends Verdict | undefined>(work: () => Promise<T>): Promise<T | Verdict> =>
  work().catch((error: Error) => ({ kind: 'not judged', why: `vitest fell over: ${error.message}` }));

const secondsSince = (startedMs: number) => `${((performance.now() - startedMs) / 1000).toFixed(1)} s`;

/** Names everything that was not killed, and closes with one line; TEST_REPORT gets the same for whoever started this. */
function close(judged: readonly Judgement[]): number {
  const required = env.AGON_REQUIRE_ENGINES === '1';
  const of = (kinds: readonly string[]) => judged.filter(({ verdict }) => kinds.includes(verdict.kind));
  const texts = (some: readonly Judgement[]) =>
    some.map(({ fault, verdict }) => `${fault.name}: ${verdict.kind}, ${verdict.why}`);
  const killed = of(['killed']);
  const skipped = of(['skipped']);
  const failed = judged.filter((each) => !killed.includes(each) && !skipped.includes(each));
  say('');
  for (const text of texts(skipped))
    say(`SKIPPED ${text}${required ? ' (AGON_REQUIRE_ENGINES=1: this is a failure)' : ''}`);
  for (const text of texts(failed)) say(`FAILED ${text}`);
  const failures = failed.length + (required ? skipped.length : 0);
  const counts = { passed: killed.length, failed: texts(failed), skipped: texts(skipped) };
  if (env.TEST_REPORT) writeFileSync(env.TEST_REPORT, JSON.stringify(counts));
  say(`${killed.length} passed, ${failures} failed, ${skipped.length} skipped`);
  return failures === 0 ? 0 : 1;
}

/** Two at a time; what takes real engines stays in the first lane, so that there is one of each. */
async function judgeGroups(wanted: readonly Fault[]): Promise<Judgement[]> {
  const specs = [...new Set(wanted.map(({ spec }) => spec))];
  const waiting = [...specs.filter(takesEngines), ...specs.filter((spec) => !takesEngines(spec))];
  const judged: Judgement[] = [];
  const work = async (takes: (spec: string) => boolean) => {
    const lane = new Lane();
    for (let spec = waiting.find(takes); spec !== undefined; spec = waiting.find(takes)) {
      waiting.splice(waiting.indexOf(spec), 1);
      const group = wanted.filter((fault) => fault.spec === spec);
      judged.push(...(await judgeAll(lane, spec, group)));
    }
    await lane.close();
  };
  await Promise.all([work(() => true), work((spec) => !takesEngines(spec))]);
  return judged;
}

const takesEngines = (spec: string) => !/\/[^/.]+\.spec\.ts$/.test(spec);

const program = newProgram(
  'faults',
  'Plants one deliberate fault after the other; the spec file beside it has to notice.',
)
  .showHelpAfterError()
  .argument('[name...]', 'only faults whose name contains this text')
  .option(
    '--file <path>',
    'only faults of files, or guarded by spec files, whose path contains this text',
    (path, paths: readonly string[]) => [...paths, path],
    [],
  )
  .option('--list', 'name them and run nothing', false)
  .action(async (names: readonly string[], { file: paths, list }: { file: readonly string[]; list: boolean }) => {
    const wanted = faults.filter(
      ({ name, file, spec }) =>
        (names.length === 0 || names.some((text) => name.includes(text))) &&
        (paths.length === 0 || paths.some((text) => file.includes(text) || spec.includes(text))),
    );
    if (wanted.length === 0) program.error('no fault is called that, or is in such a file');
    if (!list) exit(close(await judgeGroups(wanted)));
    for (const { name, file, spec } of wanted) say(`${name}: ${file}, ${spec}`);
  });
await runProgram(program);
