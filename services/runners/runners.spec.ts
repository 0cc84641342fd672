import { describe, expect, it } from 'vitest';
import { metaOf } from '../kernel/fixtures.js';
import { fold, newSigningKey, roles, runnerIdOf } from '../kernel/index.js';
import { allowed, specification } from '../kernel/spec.js';
import type { RunnerState } from './decider.js';
import { RegisterRunner, RevokeRunner, type RunnerEvent, runners, trustedKey } from './index.js';

const given = specification(runners);
const { publicKey } = newSigningKey();
const runnerId = runnerIdOf(publicKey);
const register = (change: object = {}, actor?: Parameters<typeof metaOf>[1]) =>
  new RegisterRunner({ runnerId, publicKey, ...change }, metaOf('c1', actor));
const revoke = (actor?: Parameters<typeof metaOf>[1]) =>
  new RevokeRunner({ runnerId, reason: 'stolen' }, metaOf('c2', actor));
const registered: RunnerEvent = { type: 'RunnerRegistered', data: { runnerId, publicKey } };
const revoked: RunnerEvent = { type: 'RunnerRevoked', data: { runnerId, reason: 'stolen' } };

describe('a runner', () => {
  it('is registered once', () => {
    given([]).when(register()).then([registered]);
    given([registered]).when(register()).then([]);
  });

  it('has the id of its key and no other', () => {
    given([])
      .when(register({ publicKey: newSigningKey().publicKey }))
      .thenRefused('RUNNERS.OTHER_KEY');
  });

  it('is trusted until its key is revoked, and never again', () => {
    given([registered]).when(revoke()).then([revoked]);
    given([registered, revoked]).when(revoke()).then([]);
    given([registered, revoked]).when(register()).thenRefused('RUNNERS.REVOKED');
    given([]).when(revoke()).thenRefused('RUNNERS.UNKNOWN');
    const keyAfter = (...events: RunnerEvent[]) => trustedKey(fold(runners.decider, events) as RunnerState);
    expect([keyAfter(), keyAfter(registered), keyAfter(registered, revoked)]).toEqual([
      undefined,
      publicKey,
      undefined,
    ]);
  });

  it('may register itself, and is revoked by staff', () => {
    const may = (command: (actor: { id: string; role: (typeof roles)[number] }) => object) =>
      roles.filter((role) => allowed(command({ id: 'eve', role }) as never));
    expect(may((actor) => register({}, actor))).toEqual(['operator', 'admin', 'system']);
    expect(may(({ role }) => register({}, { id: runnerId, role }))).toEqual(['operator', 'admin', 'runner', 'system']);
    expect(may(revoke)).toEqual(['operator', 'admin', 'system']);
  });
});
