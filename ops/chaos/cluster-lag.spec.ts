import { expect, it } from 'vitest';
import { lagOf } from './cluster-lag.js';

const saying = (process: string, ready: boolean, ...details: [part: string, detail: string][]) => ({
  process,
  ready,
  parts: details.map(([part, detail]) => ({ part, ready, detail })),
});

it('there is lag while a group is kept by nobody, though every process is ready', () => {
  const one = saying('boards', true, ['redis', 'PONG'], ['projection.leaderboards', 'stands by']);
  expect(lagOf([one])).toEqual(['nobody keeps projection.leaderboards']);
  const other = saying('boards-2', true, ['redis', 'PONG'], ['projection.leaderboards', '0 events behind']);
  expect(lagOf([one, other])).toEqual([]);
});

it('there is lag while one is behind, or not ready', () => {
  const behind = saying('money', true, ['projection.balances', '12 events behind']);
  expect(lagOf([behind])).toEqual(['money projection.balances 12 events behind']);
  expect(lagOf([saying('money', false)])).toEqual(['money is not ready']);
});
