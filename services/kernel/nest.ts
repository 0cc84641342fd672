import { type DynamicModule, Inject, Module, type Provider, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { CommandBus, CommandHandler, CqrsModule, type ICommand, type ICommandHandler } from '@nestjs/cqrs';
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

class Kernel {}
class WriteSide {}

/** The bus that carries commands to the contexts, by `handle()`. */
export async function commandBusOf(contexts: readonly Context[], handle: Handle) {
  const kernel: DynamicModule = {
    module: Kernel,
    global: true,
    providers: [{ provide: HANDLE, useValue: handle }],
    exports: [HANDLE],
  };
  const module: DynamicModule = {
    module: WriteSide,
    imports: [kernel, CqrsModule.forRoot(), ...contexts.map(contextModule)],
  };
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  const bus = app.get(CommandBus);
  return {
    execute: (command: Command): Promise<Handled> => bus.execute(command),
    close: () => app.close(),
  };
}
