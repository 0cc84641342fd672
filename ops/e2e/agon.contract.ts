import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { packageRoot } from '../../services/runtime/package.js';

const agon = join(packageRoot, 'ops', 'cli', 'agon.js');
// Analytics take an engine in a process of its own; the spec that is about them asks for it by flag.
// Nor does whoever runs the specs sign in to anything here.
const clean = {
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  AGON_ANALYTICS: 'false',
  AGON_CREDENTIALS: join(tmpdir(), `agon-e2e-${process.pid}`, 'credentials.json'),
};

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command of the `agon` command line to its end. */
export const run = (...args: string[]): Promise<Ran> => runWith({}, ...args);

/** The same, with settings of the environment. */
export async function runWith(env: Record<string, string>, ...args: string[]): Promise<Ran> {
  const child = spawn(execPath, [agon, ...args], { env: { ...clean, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const [[code], stdout, stderr] = await Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr };
}

export interface Served {
  readonly url: string;
  readonly events: number;
  /** Of the last event in the log. */
  readonly position: number;
  /** host:port of the endpoint for runners, if it is open. */
  readonly grpc?: string;
  /** How EventStoreDB's clients reach the log, if they can. */
  readonly eventstore?: string;
  /** host:port of the endpoint for agents from outside, if it is open. */
  readonly play?: string;
  /** Where ClickHouse answers, if it was asked for. */
  readonly clickhouse?: string;
  readonly child: ChildProcess;
  graphql<T>(query: string, variables?: Record<string, unknown>, headers?: Record<string, string>): Promise<Answer<T>>;
  /** Sends the signal and resolves with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface Answer<T> {
  readonly data: T;
  readonly errors?: { readonly message: string; readonly extensions?: { readonly code?: string } }[];
}

/** Starts an arena and waits until it says that it is ready. */
export const serve = (dataDir: string, ...args: string[]): Promise<Served> => serveWith({}, dataDir, ...args);

/** The same, with settings of the environment. */
export async function serveWith(env: Record<string, string>, dataDir: string, ...args: string[]): Promise<Served> {
  const flags = ['--data', dataDir, '--port', '0', '--json', ...args];
  const settings = { ...clean, ...env };
  const child = spawn(execPath, [agon, 'start', ...flags], { env: settings, stdio: ['ignore', 'pipe', 'pipe'] });
  const stderr = text(child.stderr);
  const ended = once(child, 'close').then(([code]): number | null => code);
  const ready = await Promise.race([
    once(createInterface(child.stdout), 'line').then(([line]): string => line),
    ended.then(async (code) => Promise.reject(new Error(`agon start ended with ${code}: ${await stderr}`))),
  ]);
  const served = JSON.parse(ready) as Served;
  return {
    ...served,
    child,
    graphql: async (query, variables = {}, headers = {}) => {
      const body = JSON.stringify({ query, variables });
      const all = { 'content-type': 'application/json', ...headers };
      const response = await fetch(`${served.url}/graphql`, { method: 'POST', headers: all, body });
      return (await response.json()) as never;
    },
    stop: (signal = 'SIGINT') => {
      child.kill(signal);
      return ended;
    },
  };
}

/** A folder for one test file, and how to remove it. */
export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'agon-e2e-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
