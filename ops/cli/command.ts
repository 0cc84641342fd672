import { env } from 'node:process';
import { Command, InvalidArgumentError } from 'commander';
import { type Config, parseConfig } from '../../services/runtime/settings.js';
import { EXIT, type Flags, type Outcome, print } from './output.js';

export type AddCommand = (name: string, summary: string) => AgonCommand;
type Result = Promise<number | Outcome>;

/** A command of the command line, as all of ours are. */
export class AgonCommand extends Command {
  override createCommand(name?: string): AgonCommand {
    return new AgonCommand(name);
  }

  /** A command that only has others below it; gives what adds those. */
  group(name: string, summary: string): AddCommand {
    const group = this.command(name).description(summary);
    return (...command) => group.add(...command);
  }

  /** A command with the two flags that every command has. */
  add(name: string, summary: string): AgonCommand {
    return this.command(name)
      .description(summary)
      .option('--data <folder>', 'the data folder (default: .agon, or AGON_DATA)')
      .option('--json', 'one line of JSON instead of text');
  }

  example(line: string): this {
    return this.addHelpText('after', `\nExample:\n  ${line}`);
  }

  /** What it does, with its arguments and flags. */
  runs<Args extends unknown[]>(action: (...args: Args) => Result): this {
    // After its arguments, commander passes a command its flags and itself.
    return this.action(async (...args) => {
      const given = args.slice(0, -1) as Args;
      process.exitCode = finish(await action(...given), given.at(-1) as Flags);
    });
  }

  /** The same on a data folder. */
  does<Args extends unknown[]>(action: (dataDir: string, ...args: Args) => Result): this {
    return this.runs((...args) => action(configOf({ data: (args.at(-1) as Flags).data }).dataDir, ...(args as Args)));
  }
}

/** Says it as the flags want it; returns the exit code. */
function finish(outcome: number | Outcome, flags: Flags): number {
  if (typeof outcome === 'number') return outcome;
  print(flags, outcome.json, outcome.text);
  return outcome.good === false ? EXIT.failed : EXIT.ok;
}

/** A function of a module that is loaded when it is called: no command waits for what only others take. */
export const lazy =
  <Name extends string>(load: () => Promise<Readonly<Record<Name, (...args: never[]) => Result>>>, name: Name) =>
  async (...args: unknown[]) =>
    (await load())[name](...(args as never[]));

export const configOf = ({ data, ...flags }: Readonly<Record<string, unknown>>): Config =>
  parseConfig({ ...flags, dataDir: data }, env);

export const count = (min: number, max: number) => (text: string) => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < min || value > max) throw new InvalidArgumentError(`It is ${min} to ${max}.`);
  return value;
};
