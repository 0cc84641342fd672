import 'reflect-metadata';
import { Global, type INestApplicationContext, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { CommandBus, CqrsModule } from '@nestjs/cqrs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MemoryEventStore } from '../adapters/store/memory.js';
import { Add, counter, metaOf } from './fixtures.js';
import { createHandle, type Handled } from './handle.js';
import { contextModule, HANDLE } from './nest.js';

describe('a context in Nest', () => {
  let store: MemoryEventStore;
  let app: INestApplicationContext;
  beforeEach(async () => {
    store = new MemoryEventStore();
    class Kernel {}
    Module({ providers: [{ provide: HANDLE, useValue: createHandle({ store }) }], exports: [HANDLE] })(Kernel);
    Global()(Kernel);
    class App {}
    Module({ imports: [CqrsModule.forRoot(), Kernel, contextModule(counter)] })(App);
    app = await NestFactory.createApplicationContext(App, { logger: false });
    await app.init();
  });
  afterEach(() => app.close());

  it('carries a command from the bus to the log', async () => {
    const bus = app.get(CommandBus);
    const handled = (await bus.execute(new Add({ counterId: 'a', by: 2 }, metaOf('c1')))) as Handled;
    expect(handled).toMatchObject({ stream: 'counter-a', revision: 0, position: 1, repeated: false });
    expect(await store.readStream('counter-a')).toMatchObject([{ type: 'Added', data: { counterId: 'a', by: 2 } }]);
  });

  it('passes a refusal on as it is', async () => {
    const bus = app.get(CommandBus);
    await expect(bus.execute(new Add({ counterId: 'a', by: -2 }, metaOf('c1')))).rejects.toMatchObject({
      code: 'COUNTER.NEGATIVE',
    });
  });

  it('names its module and its handlers after what they carry', () => {
    const { module, providers } = contextModule(counter);
    expect(module.name).toBe('counterModule');
    expect(providers?.map((provider) => (provider as { name: string }).name)).toEqual([
      'AddHandler',
      'AddEachHandler',
      'AddLittleHandler',
    ]);
  });
});
