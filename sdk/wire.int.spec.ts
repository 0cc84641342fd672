import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type handleBidiStreamingCall, ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import {
  type ArenaServiceServer,
  ArenaServiceService,
  type Hello,
  type PlayRequest,
  type PlayResponse,
} from '../proto/gen/agon/arena/v1/arena.js';
import { serve, unary } from '../proto/serve.js';
import { AgonError } from '../services/kernel/index.js';
import { pythonPath, pythonWithSdk, whyNoPython } from './python/python.contract.js';
import { Arena, play } from './typescript/index.js';

/** Leaves nothing but what clients of any gRPC service read. */
const withoutOurs: ServerInterceptor = (_method, call) =>
  new ServerInterceptingCall(call, {
    sendStatus: (status, next) => {
      status.metadata?.remove('agon-error-bin');
      next(status);
    },
  });

/** An arena that refuses everything, for a while. */
async function refusing(interceptors: readonly ServerInterceptor[]) {
  const busy = unary(() => Promise.reject(new AgonError('LIMITS.EXCEEDED', 'Too much.', { retryAfterMs: 61_500 })));
  const methods = Object.keys(ArenaServiceService).map((name) => [name, busy]);
  return serve({
    host: '127.0.0.1',
    port: 0,
    names: [],
    interceptors,
    serving: () => true,
    closing: new AbortController(),
    services: [[ArenaServiceService, Object.fromEntries(methods) as ArenaServiceServer]],
  });
}

const SCRIPT = `
import json, sys
from agon import Arena, ArenaError
try:
    Arena(sys.argv[1], "key").who_am_i()
except ArenaError as error:
    print(json.dumps([error.code, error.message, error.retryable, error.retry_after_s * 1000]))
`;

/** What a script says that runs by the SDK for Python. */
async function said(script: string, address: string): Promise<string> {
  const child = spawn(pythonWithSdk, ['-c', script, address], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...pythonPath },
  });
  let text = '';
  child.stdout.on('data', (piece) => {
    text += String(piece);
  });
  await once(child, 'close');
  return text;
}

describe.each([
  ['as the arena says it', []],
  ['by Google’s error model alone', [withoutOurs]],
])('a refusal %s', (_what, interceptors) => {
  it('is read by the SDK for TypeScript', async () => {
    const endpoint = await refusing(interceptors);
    const arena = new Arena({ arena: endpoint.address, key: 'key' });
    const refused = { code: 'LIMITS.EXCEEDED', message: 'Too much.', retryable: true, retryAfterMs: 61_500 };
    await expect(arena.whoAmI()).rejects.toMatchObject(refused);
    arena.close();
    await endpoint.close();
  });

  it.skipIf(whyNoPython !== undefined)(
    `is read by the SDK for Python${whyNoPython ? ` (${whyNoPython})` : ''}`,
    async () => {
      const endpoint = await refusing(interceptors);
      expect(JSON.parse(await said(SCRIPT, endpoint.address))).toEqual(['LIMITS.EXCEEDED', 'Too much.', true, 61_500]);
      await endpoint.close();
    },
  );
});

/** An arena that hears who comes, and sends everybody away. */
async function listening(heard: (hello: Hello) => void) {
  const play: handleBidiStreamingCall<PlayRequest, PlayResponse> = (call) => {
    call.once('data', ({ notes: [note] }: PlayRequest) => {
      if (note?.what?.$case === 'hello') heard(note.what.hello);
      call.write({ notes: [{ what: { $case: 'goingAway', goingAway: { code: 'PLAY.REVOKED', message: 'Gone.' } } }] });
      call.end();
    });
  };
  return serve({
    host: '127.0.0.1',
    port: 0,
    names: [],
    serving: () => true,
    closing: new AbortController(),
    services: [[ArenaServiceService, { play } as unknown as ArenaServiceServer]],
  });
}

describe('whoever waits for matches says how many it takes', () => {
  const hello = { agent: 'ada.bot', games: ['chess'], capacity: 3, openMatches: [] };

  it('by the SDK for TypeScript', async () => {
    const heard: Hello[] = [];
    const endpoint = await listening((each) => heard.push(each));
    const where = { arena: endpoint.address, key: 'key', agent: 'ada.bot', register: false };
    const playing = play({ ...where, games: ['chess'], concurrency: 3, act: ({ board }) => board });
    await expect(playing).rejects.toMatchObject({ code: 'PLAY.REVOKED' });
    expect(heard).toMatchObject([hello]);
    await endpoint.close();
  });

  it.skipIf(whyNoPython !== undefined)('by the SDK for Python', async () => {
    const heard: Hello[] = [];
    const endpoint = await listening((each) => heard.push(each));
    const script = `
import sys
from agon import ArenaError, play
try:
    play(arena=sys.argv[1], key="key", agent="ada.bot", register=False, games=["chess"], concurrency=3, act=lambda o, t: "")
except ArenaError as error:
    print(error.code)
`;
    expect(await said(script, endpoint.address)).toBe('PLAY.REVOKED\n');
    expect(heard).toMatchObject([hello]);
    await endpoint.close();
  });
});
