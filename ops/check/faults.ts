import { writeFileSync } from 'node:fs';
import { env, exit, stderr, stdout } from 'node:process';
import { parseArgs } from 'node:util';
import { type Fault, faults } from './faults/index.js';
import { Lane } from './faults/lane.js';
import { judge, type Verdict, whyUnfitToJudge } from './faults/verdict.js';

const USAGE = `usage: npm run faults -- [name]... [--file path]... [--list]

Plants one deliberate fault after the other and runs the spec file that has to notice it.

  name         only faults whose name contains this text
  --file path  only faults of files, or guarded by spec files, whose path contains this text
  --list       names them and runs nothing
`;

interface Judgement {
  readonly fault: Fault;
  readonly verdict: Verdict;
}

const say = (text: string) => stdout.write(`${text}\n`);

interface Question {
  readonly wanted: readonly Fault[];
  readonly list: boolean;
  readonly help: boolean;
}

/** What was asked for; throws if that is not understood. */
function asked(): Question {
  const options = {
    file: { type: 'string', multiple: true },
    list: { type: 'boolean' },
    help: { type: 'boolean' },
  } as const;
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const wanted = faults.filter(
    ({ name, file, spec }) =>
      (positionals.length === 0 || positionals.some((text) => name.includes(text))) &&
      (values.file ?? ['']).some((text) => file.includes(text) || spec.includes(text)),
  );
  if (wanted.length === 0) throw new Error('no fault is called that, or is in such a file');
  return { wanted, list: values.list ?? false, help: values.help ?? false };
}

/** Judges the faults that one spec file guards, after a look at whether that file can judge. */
async function judgeAll(lane: Lane, spec: string, group: readonly Fault[]): Promise<Judgement[]> {
  const startedMs = performance.now();
  const unfit = await unfitSpecs(lane, spec);
  say(`baseline    ${spec} (${secondsSince(startedMs)})`);
  const judged: Judgement[] = [];
  for (const fault of group) {
    const faultStartedMs = performance.now();
    const verdict = unfit ?? (await tried(lane, fault));
    const why = verdict.kind === 'killed' ? '' : `: ${verdict.why}`;
    say(`${verdict.kind.padEnd(11)} ${fault.name} (${secondsSince(faultStartedMs)})${why}`);
    judged.push({ fault, verdict });
  }
  return judged;
}

/** What became of a fault; vitest falling over is no verdict about it, and keeps no other from being tried. */
async function tried(lane: Lane, fault: Fault): Promise<Verdict> {
  try {
    const { run, planted } = await lane.run(fault.spec, fault);
    return judge(run, planted);
  } catch (error) {
    return { kind: 'not judged', why: `vitest fell over: ${(error as Error).message}` };
  }
}

/** Why the specs of a file cannot judge; undefined if they can. */
async function unfitSpecs(lane: Lane, spec: string): Promise<Verdict | undefined> {
  try {
    return whyUnfitToJudge((await lane.run(spec)).run);
  } catch (error) {
    return { kind: 'not judged', why: `vitest fell over: ${(error as Error).message}` };
  }
}

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

async function main(): Promise<number> {
  let question: Question;
  try {
    question = asked();
  } catch (error) {
    stderr.write(`${(error as Error).message}\n\n${USAGE}`);
    return 2;
  }
  if (question.help) say(USAGE);
  else if (question.list) for (const { name, file, spec } of question.wanted) say(`${name}: ${file}, ${spec}`);
  else return close(await judgeGroups(question.wanted));
  return 0;
}

exit(await main());
