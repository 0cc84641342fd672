import { randomFillSync } from 'node:crypto';
import { cpus } from 'node:os';
import { asAgonError } from '../../services/kernel/index.js';
import { bootCode } from '../bundles/bundle.js';
import { jsonOf } from '../json.js';
import {
  type AgentInstance,
  type Completion,
  completed,
  type Fault,
  type FaultRule,
  fault,
  type LoadOptions,
  type Reply,
  randomStart,
  sourceTooLarge,
  type Trouble,
} from './driver.js';
import type { Sandbox } from './sandbox.js';

const cores = cpus().length;

/** Room for the token and the letter in front of a reply, and for the text of an error. */
const lineOverheadBytes = 8_192;

/** Nobody can guess them; they are drawn many at a time, because drawing takes longer than anything else in a call. */
const tokenBytes = 8;
const tokens = Buffer.alloc(512 * tokenBytes);
let tokensAt = tokens.length;

function newToken(): string {
  if (tokensAt === tokens.length) {
    randomFillSync(tokens);
    tokensAt = 0;
  }
  tokensAt += tokenBytes;
  return tokens.toString('hex', tokensAt - tokenBytes, tokensAt);
}

const noAct = 'the source defines no act(observation)';

type Verb = 'boot' | 'init' | 'act' | 'onResult';

interface Question {
  readonly token: string;
  readonly verb: Verb;
  readonly startedMs: number;
  /** The group's account before the question. */
  readonly beforeMs: number;
  readonly budgetMs: number;
  readonly settle: (answer: Reply | Fault) => void;
}

/** What the letter before an answer means. All of it is the agent's own word, and costs or helps nobody else. */
function readAnswer(answer: string, replyBytes: number): string | Trouble {
  const body = answer.slice(1);
  const text = (): string => {
    const said = jsonOf(body);
    return typeof said === 'string' ? said : 'no reason given';
  };
  switch (answer[0]) {
    case 'R':
      return body;
    case 'L':
      return { rule: 'reply_too_large', detail: `the reply has ${Number(body)} bytes, ${replyBytes} are allowed` };
    case 'B':
      return { rule: 'bad_reply', detail: text() };
    case 'S':
      return { rule: 'syntax_error', detail: text() };
    case 'N':
      return { rule: 'no_act', detail: noAct };
    case 'M':
      return { rule: 'out_of_memory', detail: text() };
    case 'E':
      return { rule: 'crash', detail: text() };
    default:
      return { rule: 'forged_reply', detail: 'the answer is none of the protocol' };
  }
}

/** One agent in one sandbox: the host's side of the protocol, the clocks, and the verdict on whatever goes wrong. */
export class ProcessAgent implements AgentInstance {
  readonly driver: string;
  readonly driverVersion: string;
  readonly meter = 'time';
  private ended = false;
  private pending: Question | undefined;
  /** The next look at the clocks, and when it is due. */
  private watchdog: NodeJS.Timeout | undefined;
  private lookMs = Number.POSITIVE_INFINITY;
  private failed: Fault | undefined;
  private trouble: Trouble | undefined;
  private fuel = 0;
  private wallMs = 0;
  /** The group's account when the agent got the sandbox, and when it was last asked. */
  private readonly baseMs: number;
  private spentMs: number;
  private readMs = performance.now();
  private peakMemoryBytes = 0;

  constructor(
    driver: { name: string; version: string },
    private readonly source: string,
    private readonly options: LoadOptions,
    private readonly sandbox: Sandbox,
    private readonly destroy: () => void,
  ) {
    this.driver = driver.name;
    this.driverVersion = driver.version;
    const { memoryBytes, tasks, logBytes, outputBytes, replyBytes } = options.limits;
    this.baseMs = sandbox.account.spentMs();
    this.spentMs = this.baseMs;
    sandbox.assign(
      {
        line: (text) => this.hear(text),
        overlong: () => this.stop('reply_too_large', `more than ${replyBytes} bytes`),
        flood: () => this.stop('flood', `printed more than ${outputBytes} bytes`),
        gone: (how) => this.stop('crash', `the agent's process ended: ${how}`),
      },
      { memoryBytes, tasks, logBytes, outputBytes, lineBytes: replyBytes + lineOverheadBytes },
    );
  }

  get usage() {
    this.measure();
    if (!this.ended) this.peakMemoryBytes = this.peak();
    return {
      fuel: this.fuel,
      peakMemoryBytes: this.peakMemoryBytes,
      ...(this.sandbox.account.clock === 'cpu' ? { cpuMs: Math.round(this.spentMs - this.baseMs) } : {}),
      wallMs: Math.round(this.wallMs),
    };
  }

  async init(config: unknown, fuel: number): Promise<Completion | Fault> {
    const booted = await this.boot(fuel);
    if (booted.kind === 'fault') return booted;
    const answer = await this.call('init', config, fuel - booted.fuel);
    return completed({ ...answer, fuel: booted.fuel + answer.fuel });
  }

  /** Runs the top level only, which is all that a check at submission needs. */
  async boot(fuel: number): Promise<Completion | Fault> {
    const { limits } = this.options;
    const tooLarge = sourceTooLarge(this.source, limits);
    if (tooLarge) this.stop(tooLarge.rule, tooLarge.detail);
    const { digest, words } = randomStart(this.options);
    const order = { ...this.code(), seed: digest.toString('hex'), words, replyBytes: limits.replyBytes };
    return completed(await this.call('boot', order, fuel));
  }

  private code(): Partial<ReturnType<typeof bootCode>> {
    try {
      return bootCode(this.source);
    } catch (error) {
      this.stop('syntax_error', asAgonError(error).message);
      return {};
    }
  }

  act(observation: unknown, fuel: number): Promise<Reply | Fault> {
    return this.call('act', observation, fuel);
  }

  async onResult(result: unknown, fuel: number): Promise<Completion | Fault> {
    return completed(await this.call('onResult', result, fuel));
  }

  log(): string {
    return this.sandbox.log();
  }

  dispose(): void {
    this.stop('crash', 'the agent has been disposed of');
    this.end();
  }

  /** One request, one line of answer with the same token. */
  private call(verb: Verb, argument: unknown, budgetMs: number): Promise<Reply | Fault> {
    if (this.failed) return Promise.resolve({ ...this.failed, fuel: 0 });
    if (this.trouble !== undefined) return Promise.resolve(this.fail(this.trouble, 0));
    const startedMs = performance.now();
    // CPU time that was burnt since the last turn is charged to this one; time on the wall is the opponent's.
    if (this.sandbox.account.clock === 'wall') this.measure();
    return new Promise((settle) => {
      const token = newToken();
      this.pending = { token, verb, startedMs, beforeMs: this.spentMs, budgetMs, settle };
      this.sandbox.send(`${token} ${verb} ${JSON.stringify(argument)}`);
      this.watch(startedMs + Math.max(0, budgetMs) + 1);
    });
  }

  /** What an answer is worth, or its absence. What it costs is what the kernel says it cost. */
  private judge({ verb, startedMs, beforeMs, budgetMs }: Question, answered: string | Trouble): Reply | Fault {
    const nowMs = performance.now();
    this.wallMs += nowMs - startedMs;
    const usedMs = this.usedMs(nowMs, beforeMs, budgetMs);
    const fuel = Math.min(Math.ceil(usedMs), Math.max(0, budgetMs));
    this.fuel += fuel;
    if (typeof answered !== 'string') return this.fail(answered, fuel);
    if (usedMs > budgetMs) return this.fail(overtime(usedMs, budgetMs), fuel);
    const read = readAnswer(answered, this.options.limits.replyBytes);
    if (typeof read !== 'string') return this.fail(read, fuel);
    if (verb !== 'act') return { kind: 'reply', value: null, fuel };
    const value = jsonOf(read);
    if (value === undefined) return this.fail({ rule: 'bad_reply', detail: 'not JSON' }, fuel);
    return { kind: 'reply', value, fuel };
  }

  /**
   * What a call used. No core is in two places at once, so that a group cannot have used more than the time on the wall
   * since its account was read, on every core. While that is less than the millisecond that a call costs at least, there
   * is nothing to read, which would take as long as the call.
   */
  private usedMs(nowMs: number, beforeMs: number, budgetMs: number): number {
    const mostMs = (nowMs - this.readMs) * cores;
    if (this.sandbox.account.clock === 'cpu' && mostMs < Math.min(1, budgetMs)) return mostMs;
    this.measure();
    return this.spentMs - beforeMs;
  }

  /** Sees to it that the clocks are looked at by then. Most calls are short, so that one timer serves many of them. */
  private watch(dueMs: number): void {
    if (this.lookMs <= dueMs) return;
    clearTimeout(this.watchdog);
    this.lookMs = dueMs;
    this.watchdog = setTimeout(() => this.look(), dueMs - performance.now());
  }

  /** Stops a call that has reached one of its two limits, or looks again when it could. */
  private look(): void {
    this.lookMs = Number.POSITIVE_INFINITY;
    if (this.pending === undefined) return;
    const { startedMs, beforeMs, budgetMs } = this.pending;
    this.measure();
    const nowMs = performance.now();
    const leftMs = budgetMs - (this.spentMs - beforeMs);
    const untilDeadlineMs = startedMs + budgetMs + this.options.limits.stallMs - nowMs;
    if (leftMs < 0) {
      const { rule, detail } = overtime(budgetMs - leftMs, budgetMs);
      this.stop(rule, detail);
    } else if (untilDeadlineMs <= 0) {
      this.stop('timeout', `no reply after ${Math.round(nowMs - startedMs)} ms`);
    } else {
      this.watch(nowMs + Math.min(leftMs + 1, untilDeadlineMs));
    }
  }

  private hear(text: string): void {
    const pending = this.pending;
    if (pending === undefined || !text.startsWith(`${pending.token} `)) {
      this.stop('forged_reply', 'the agent spoke on the line of the protocol');
    } else {
      this.pending = undefined;
      pending.settle(this.judge(pending, text.slice(pending.token.length + 1)));
    }
  }

  /** Ends the agent for a reason that its own answer did not give. The first reason counts. */
  private stop(rule: FaultRule, detail: string): void {
    const starved = rule === 'crash' && !this.ended && this.sandbox.account.oomKills() > 0;
    this.trouble ??= starved ? { rule: 'out_of_memory', detail: 'stopped at its limit of memory' } : { rule, detail };
    const pending = this.pending;
    this.pending = undefined;
    pending?.settle(this.judge(pending, this.trouble));
    this.end();
  }

  private fail(trouble: Trouble, fuel: number): Fault {
    this.failed = fault(trouble.rule, trouble.detail, fuel);
    this.trouble ??= trouble;
    this.end();
    return this.failed;
  }

  private measure(): void {
    if (this.ended) return;
    // The time is taken first: what is used up in between must not be left out.
    this.readMs = performance.now();
    this.spentMs = this.sandbox.account.spentMs();
  }

  private peak(): number {
    return Math.max(0, this.sandbox.account.peakMemoryBytes() - this.sandbox.baseMemoryBytes);
  }

  /** The last look at the accounts, and the end of everything that runs in the sandbox. */
  private end(): void {
    if (this.ended) return;
    this.measure();
    this.peakMemoryBytes = this.peak();
    this.ended = true;
    clearTimeout(this.watchdog);
    this.destroy();
  }
}

const overtime = (usedMs: number, budgetMs: number): Trouble => ({
  rule: 'timeout',
  detail: `used ${Math.ceil(usedMs)} ms of its time, ${Math.max(0, budgetMs)} are allowed`,
});
