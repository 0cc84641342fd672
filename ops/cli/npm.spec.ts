import { describe, expect, it } from 'vitest';
import { npmAbove } from './npm.js';

/** Processes by their numbers: whose child each is, and what it was called as. */
const among = (processes: Record<number, readonly [parent: number, command: string]>) => (pid: number) => {
  const found = processes[pid];
  return found && { parent: found[0], command: found[1] };
};

describe('the npm that started a process', () => {
  it.each([
    ['npm start', { 5: [4, 'sh -c node ops/cli/agon.js start'], 4: [3, 'npm start'], 3: [1, '-bash'] }, 4],
    ['npx', { 5: [4, 'sh -c agon start'], 4: [3, 'npm exec agon start'], 3: [1, '-bash'] }, 4],
    ['npm by its file', { 5: [4, '/bin/bash -c agon start'], 4: [3, 'node /usr/bin/npm start'] }, 4],
    ['an npm whose shell gave its place to us', { 5: [3, 'npm start --port 0'], 3: [1, 'bash'] }, 5],
  ] as const)('is found: %s', (_how, processes, launcher) => {
    expect(npmAbove(5, among(processes))).toBe(launcher);
  });

  it.each([
    ["a user's shell", { 5: [4, '-bash'], 4: [1, 'sshd'] }],
    ['a script that npm ran, and that left us behind', { 5: [4, 'bash deploy.sh'], 4: [3, 'npm run deploy'] }],
    ['a process of ours that npm started', { 5: [4, '/usr/bin/node ops/cli/agon.js cluster up'], 4: [3, 'npm start'] }],
    ['a shell that was asked for us by somebody else', { 5: [4, 'sh -c agon start'], 4: [1, 'tmux'] }],
    ['a service manager', { 1: [0, '/sbin/init'] }],
  ] as const)('is none for %s', (_how, processes) => {
    expect(npmAbove(1 in processes ? 1 : 5, among(processes))).toBeUndefined();
  });
});
