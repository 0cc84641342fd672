/** `npm run attack`: hostile agents against every driver of this machine, each with a control that has no sandbox. */
import { argv, exit, stdout } from 'node:process';
import { parseArgs } from 'node:util';
import type { Result } from './attack.js';
import { attackDriver, attacksNeeded, isGood, targets, whyNot } from './run.js';

const { values } = parseArgs({
  args: argv.slice(2),
  options: { json: { type: 'boolean', default: false }, driver: { type: 'string', multiple: true, default: [] } },
});
const say = (text: string): void => {
  if (!values.json) stdout.write(`${text}\n`);
};

const unknown = values.driver.filter((name) => !targets.some((target) => target.name === name));
if (unknown.length > 0) {
  stdout.write(`There is no driver ${unknown.join(', ')}; there are ${targets.map(({ name }) => name).join(', ')}.\n`);
  exit(2);
}

const line = ({ driver, attack, verdict, detail }: Result): string =>
  `${driver.padEnd(15)} ${attack.padEnd(42)} ${verdict.padEnd(10)} ${detail.slice(0, 90)}`;

const results: Result[] = [];
const skipped: { driver: string; reason: string }[] = [];
let good = true;
for (const target of targets) {
  if (values.driver.length > 0 && !values.driver.includes(target.name)) continue;
  const reason = whyNot(target.name);
  if (reason !== undefined) {
    skipped.push({ driver: target.name, reason });
    say(`SKIPPED ${target.name}: ${reason}`);
    // Whoever names a driver wants it attacked; otherwise, it is every driver that this machine can run.
    good &&= values.driver.length === 0;
    continue;
  }
  const found = await attackDriver(target, (result) => say(line(result)));
  results.push(...found);
  const contained = found.filter(({ verdict }) => verdict === 'contained').length;
  const bad = found.filter((result) => !isGood(result));
  good &&= bad.length === 0 && contained >= attacksNeeded;
  say(
    `\n${target.name}: ${contained} attacks contained, ${bad.length} not, ${found.length - contained - bad.length} absent from this machine\n`,
  );
}
if (values.json) stdout.write(`${JSON.stringify({ good, results, skipped }, null, 2)}\n`);
else say(good ? 'All were contained.' : 'NOT all were contained.');
exit(good ? 0 : 1);
