import { createHash } from 'node:crypto';
import { AgonError } from '../../services/kernel/index.js';
import type { Limits, Meter } from '../limits.js';

/**
 * The whole surface between the arena and an agent, the same for every driver. A driver knows nothing of games: it
 * carries JSON in, JSON out, and stops an agent that goes past its limits. It never throws on account of an agent;
 * whatever an agent does wrong comes back as a named fault, and the referee decides what that costs.
 */
export interface Driver {
  /** Recorded in every match, because a result can only be reproduced by the driver that made it. */
  readonly name: string;
  /** Of whatever the agent's code runs on, as far as it can change what an agent does. */
  readonly version: string;
  readonly meter: Meter;
  load(source: string, options: LoadOptions): Promise<AgentInstance>;
  /** Refuses, at submission, a source that could not play a single turn. */
  check(source: string, limits: Limits): Promise<SourceCheck>;
  close(): Promise<void>;
}

export interface LoadOptions {
  /** The agent's randomness is a function of this and the seat, so that a match can be played again. */
  readonly seed: string;
  readonly seat: number;
  readonly limits: Limits;
  /** Left out, an agent has no network at all. */
  readonly endpoint?: EgressEndpoint | undefined;
}

/** The one way out of a sandbox: a socket of the egress proxy that serves this agent and nobody else. */
export interface EgressEndpoint {
  readonly socket: string;
  /** Certificates that the agent may trust, as a PEM file. */
  readonly authorities: string;
}

/**
 * One agent in one match. Agent code runs inside `init`, `act` and `onResult` and at no other time, so that whoever
 * calls knows whose code is running. After a fault the instance answers every call with that same fault.
 */
export interface AgentInstance {
  /** The driver's name. */
  readonly driver: string;
  readonly driverVersion: string;
  /** What `fuel` counts here: ticks, or milliseconds. */
  readonly meter: Meter;
  readonly usage: Usage;
  /** Runs the top level of the source, then its `init` if it has one. */
  init(config: unknown, fuel: number): Promise<Completion | Fault>;
  act(observation: unknown, fuel: number): Promise<Reply | Fault>;
  onResult(result: unknown, fuel: number): Promise<Completion | Fault>;
  /** What the agent wrote to its console, capped. It belongs to the agent's owner and goes into no record. */
  log(): string;
  /** Safe to call at any time and more than once. */
  dispose(): void;
}

export interface Usage {
  readonly fuel: number;
  readonly peakMemoryBytes: number;
  /** Measured, and so never twice the same; a driver that counts fuel leaves them out to stay reproducible. */
  readonly cpuMs?: number;
  /** From the request to the reply, all calls together: what is above `cpuMs` is waiting and transport. */
  readonly wallMs?: number;
  /** What an agent outside says it took to think; nobody here can check it. */
  readonly claimedComputeMs?: number;
}

export interface Completion {
  readonly kind: 'done';
  readonly fuel: number;
}

export interface Reply {
  readonly kind: 'reply';
  /** Parsed from the agent's JSON text, so it is plain data and never an object of the sandbox. */
  readonly value: unknown;
  readonly fuel: number;
}

export const faultRules = [
  'crash',
  'out_of_fuel',
  'timeout',
  'out_of_memory',
  'reply_too_large',
  'bad_reply',
  'forged_reply',
  'flood',
  'no_act',
  'syntax_error',
  'source_too_large',
] as const;

export type FaultRule = (typeof faultRules)[number];

export interface Fault {
  readonly kind: 'fault';
  readonly rule: FaultRule;
  readonly detail: string;
  readonly fuel: number;
}

/** What went wrong before it is known what it cost. */
export type Trouble = Pick<Fault, 'rule' | 'detail'>;

export type SourceCheck =
  | { readonly ok: true }
  | { readonly ok: false; readonly rule: FaultRule; readonly detail: string };

const detailChars = 300;

/** Details come from agents: one line, short, and without characters that could play tricks in a terminal or a log. */
export function cleanDetail(text: string): string {
  const line = text
    .slice(0, 4 * detailChars)
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
  if (line.length <= detailChars) return line;
  // A cut through a surrogate pair would leave text that canonical JSON refuses.
  return `${line.slice(0, detailChars - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

export const fault = (rule: FaultRule, detail: string, fuel: number): Fault => ({
  kind: 'fault',
  rule,
  detail: cleanDetail(detail),
  fuel,
});

/** Of the two functions of an agent that have no reply, whatever they returned. */
export const completed = (answer: Reply | Fault): Completion | Fault =>
  answer.kind === 'fault' ? answer : { kind: 'done', fuel: answer.fuel };

/** Runs the top level of a source, which is all that a check at submission needs, and lets the agent go. */
export async function checked(
  agent: AgentInstance & { boot(fuel: number): Promise<Completion | Fault> },
  fuel: number,
): Promise<SourceCheck> {
  const booted = await agent.boot(fuel).finally(() => agent.dispose());
  return booted.kind === 'fault' ? { ok: false, rule: booted.rule, detail: booted.detail } : { ok: true };
}

export function sourceTooLarge(source: string, { sourceBytes: allowed }: Limits): Trouble | undefined {
  const sourceBytes = Buffer.byteLength(source);
  if (sourceBytes <= allowed) return undefined;
  return { rule: 'source_too_large', detail: `the source has ${sourceBytes} bytes, ${allowed} are allowed` };
}

/** What the agent's randomness starts from: the whole digest, and its first words. */
export function randomStart({ seed, seat }: LoadOptions) {
  const digest = createHash('sha256').update(`${seed}\n${seat}`).digest();
  return { digest, words: [0, 4, 8, 12].map((offset) => digest.readInt32LE(offset)) };
}

export const unavailable = (reason: string, what = 'The process driver cannot run here'): AgonError =>
  new AgonError('SANDBOX.DRIVER_UNAVAILABLE', `${what}: ${reason}.`, { reason });
