import { describe, expect, it } from 'vitest';
import { metaOf } from '../kernel/fixtures.js';
import { type Actor, fold, NO_CODE, roles } from '../kernel/index.js';
import { allowed, specification } from '../kernel/spec.js';
import type { AgentState } from './decider.js';
import {
  type AgentEvent,
  agentFrom,
  agentIdOf,
  agents,
  PublishVersion,
  RegisterExternalAgent,
  SubmitAgent,
} from './index.js';

const given = specification(agents);
const stateAfter = (...events: AgentEvent[]) => agentFrom(fold(agents.decider, events) as AgentState);
const digest = (letter: string) => letter.repeat(64);
const code = (letter: string, codeBytes = 100) =>
  ({ codeDigest: digest(letter), codeBytes, runtime: 'javascript' }) as const;
const minimax = { ownerId: 'ada', name: 'minimax', games: ['tic-tac-toe'] };

const submit = (change: object = {}, actor?: Actor) =>
  new SubmitAgent({ ...minimax, ...code('a'), ...change }, metaOf('c1', actor));
const publish = (change: object = {}, actor?: Actor) =>
  new PublishVersion({ ownerId: 'ada', name: 'minimax', ...code('b', 120), ...change }, metaOf('c2', actor));

const submitted = {
  type: 'AgentSubmitted',
  data: { agentId: 'ada.minimax', ...minimax, version: 1, ...code('a') },
} as const;
const published = (version: number, letter: string, codeBytes = 120) =>
  ({ type: 'AgentVersionPublished', data: { agentId: 'ada.minimax', version, ...code(letter, codeBytes) } }) as const;

describe('submitting an agent', () => {
  it('makes its first version', () => {
    given([]).when(submit()).then([submitted]);
  });

  it('refuses a name that the owner has used', () => {
    given([submitted]).when(submit()).thenRefused('AGENTS.EXISTS');
    given([submitted, published(2, 'b')])
      .when(submit(code('c')))
      .thenRefused('AGENTS.EXISTS');
  });
});

describe('publishing a version', () => {
  it('counts on from the last one', () => {
    given([submitted])
      .when(publish())
      .then([published(2, 'b')]);
    given([submitted, published(2, 'b')])
      .when(publish(code('c')))
      .then([published(3, 'c', 100)]);
  });

  it('of the same code as the last one is no new version', () => {
    given([submitted])
      .when(publish(code('a')))
      .then([]);
    given([submitted, published(2, 'b')])
      .when(publish())
      .then([]);
  });

  it('of older code again is a new version', () => {
    given([submitted, published(2, 'b')])
      .when(publish(code('a')))
      .then([published(3, 'a', 100)]);
  });

  it('needs an agent', () => {
    given([]).when(publish()).thenRefused('AGENTS.UNKNOWN');
  });
});

describe('commands to an agent', () => {
  it('meet on its own stream, and two owners may use one name', () => {
    expect(SubmitAgent.spec.stream(submit().data)).toBe('agent-ada.minimax');
    expect(PublishVersion.spec.stream(publish().data)).toBe('agent-ada.minimax');
    expect(agentIdOf('bob', 'minimax')).toBe('bob.minimax');
  });

  it.each<[string, object]>([
    ['an owner that is no name', { ownerId: 'Ada!' }],
    ['a name with a dot', { name: 'mini.max' }],
    ['no games', { games: [] }],
    ['a game without a name', { games: [''] }],
    ['too many games', { games: Array.from({ length: 33 }, (_, i) => `game-${i}`) }],
    ['a digest that is none', { codeDigest: 'abc' }],
    ['a digest in capitals', { codeDigest: digest('A') }],
    ['no code', { codeBytes: 0 }],
    ['an unknown runtime', { runtime: 'cobol' }],
  ])('do not understand %s', (_what, change) => {
    expect(() => submit(change)).toThrow(expect.objectContaining({ code: 'COMMAND.INVALID' }));
  });

  it.each(roles)('by %s', (role) => {
    const staff = ['operator', 'admin', 'system'].includes(role);
    for (const command of [submit, publish]) {
      expect(allowed(command({}, { id: 'ada', role }))).toBe(staff || role === 'owner');
      expect(allowed(command({}, { id: 'eve', role }))).toBe(staff);
    }
  });
});

describe('an agent that plays from outside', () => {
  const register = (change: object = {}, actor?: Actor) =>
    new RegisterExternalAgent({ ...minimax, ...change }, metaOf('c3', actor));
  const registered = { type: 'ExternalAgentRegistered', data: { agentId: 'ada.minimax', ...minimax } } as const;

  it('is registered once, and may say so again', () => {
    given([]).when(register()).then([registered]);
    given([registered]).when(register()).then([]);
    given([registered])
      .when(register({ games: ['chess'] }))
      .thenRefused('AGENTS.EXISTS');
    given([submitted]).when(register()).thenRefused('AGENTS.EXISTS');
  });

  it('has no code, and takes none', () => {
    given([registered]).when(publish()).thenRefused('AGENTS.EXTERNAL');
    given([registered]).when(submit()).thenRefused('AGENTS.EXISTS');
    expect(stateAfter(registered)).toEqual({
      version: 1,
      codeDigest: NO_CODE,
      runtime: 'external',
      games: minimax.games,
    });
    expect(stateAfter(submitted, published(2, 'b'))).toMatchObject({ version: 2, games: minimax.games });
    expect(stateAfter()).toBeUndefined();
  });

  it('is registered by its owner', () => {
    expect(allowed(register({}, { id: 'ada', role: 'owner' }))).toBe(true);
    expect(allowed(register({}, { id: 'eve', role: 'owner' }))).toBe(false);
  });
});
