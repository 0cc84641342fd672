import { exit, stdout } from 'node:process';
import { Option } from 'commander';
import { newProgram, runProgram } from '../harness/command-line.js';
import type { Result } from './attack.js';
import { attackDriver, attacksNeeded, isGood, targets, whyNot } from './run.js';

const lineOf = ({ driver, attack, verdict, detail }: Result): string =>
  `${driver.padEnd(15)} ${attack.padEnd(42)} ${verdict.padEnd(10)} ${detail.slice(0, 90)}`;

const names = targets.map(({ name }) => name);
const program = newProgram('attack', 'Hostile agents against every driver of this machine, each with a control.')
  .option('--json', 'one piece of JSON on stdout', false)
  .addOption(new Option('--driver <name...>', 'these alone').choices(names).default([]))
  .action(attackAll);
await runProgram(program);

async function attackAll({ json, driver: only }: { json: boolean; driver: readonly string[] }): Promise<never> {
  const say = (text: string): void => {
    if (!json) stdout.write(`${text}\n`);
  };
  const results: Result[] = [];
  const skipped: { driver: string; reason: string }[] = [];
  let good = true;
  for (const target of targets) {
    if (only.length > 0 && !only.includes(target.name)) continue;
    const reason = whyNot(target.name);
    if (reason !== undefined) {
      skipped.push({ driver: target.name, reason });
      say(`SKIPPED ${target.name}: ${reason}`);
      // Whoever names a driver wants it attacked; otherwise, it is every driver that this machine can run.
      good &&= only.length === 0;
      continue;
    }
    const found = await attackDriver(target, (result) => say(lineOf(result)));
    results.push(...found);
    const contained = found.filter(({ verdict }) => verdict === 'contained').length;
    const bad = found.filter((result) => !isGood(result));
    good &&= bad.length === 0 && contained >= attacksNeeded;
    say(
      `\n${target.name}: ${contained} attacks contained, ${bad.length} not, ${found.length - contained - bad.length} absent from this machine\n`,
    );
  }
  if (json) stdout.write(`${JSON.stringify({ good, results, skipped }, null, 2)}\n`);
  else say(good ? 'All were contained.' : 'NOT all were contained.');
  exit(good ? 0 : 1);
}
