import { type DynamicModule, Inject, Module, type Provider, type Type } from '@nestjs/common';
import { CommandHandler, type ICommand, type ICommandHandler } from '@nestjs/cqrs';
import type { CommandClass } from './command.js';
import type { Context } from './context.js';
import type { Command } from './decider.js';
import type { Handle, Handled } from './handle.js';

/** The provider token of `handle()`. */
export const HANDLE = Symbol('handle');

/**
 * Turns a context into a Nest module: one generated handler a command, so that there is no file per handler and no
 * second write path.
 *
 * @example imports: [contextModule(wallet)]
 */
export function contextModule(context: Context): DynamicModule {
  class ContextModule {}
  Object.defineProperty(ContextModule, 'name', { value: `${context.name}Module` });
  Module({})(ContextModule);
  return {
    module: ContextModule,
    providers: context.commands.map((command) => handlerOf(context, command) as Provider),
  };
}

function handlerOf(context: Context, command: CommandClass): Type<ICommandHandler<ICommand, Handled>> {
  class GeneratedHandler implements ICommandHandler<ICommand, Handled> {
    constructor(@Inject(HANDLE) private readonly handle: Handle) {}

    execute(received: ICommand): Promise<Handled> {
      return this.handle(context, received as Command);
    }
  }
  Object.defineProperty(GeneratedHandler, 'name', { value: `${command.spec.type}Handler` });
  CommandHandler(command as unknown as Type<ICommand>)(GeneratedHandler);
  return GeneratedHandler;
}
