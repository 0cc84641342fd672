import { exit, stderr } from 'node:process';
import { Command, InvalidArgumentError } from 'commander';
import { asAgonError } from '../../services/kernel/index.js';

/** A script of package.json with commands of its own. It exits with 2 when nobody understands what was asked for. */
export const newProgram = (script: string, about: string): Command =>
  new Command(`npm run ${script} --`).description(about).exitOverride(({ exitCode }) => exit(exitCode === 0 ? 0 : 2));

/** Carries out what was asked for, and exits with 1 when it fails. */
export async function runProgram(program: Command): Promise<void> {
  try {
    await program.parseAsync();
  } catch (error) {
    const { code, message } = asAgonError(error);
    stderr.write(`${code}: ${message}\n`);
    exit(1);
  }
}

export const wholeNumber =
  (min: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < min) throw new InvalidArgumentError(`It is a whole number from ${min} on.`);
    return value;
  };
