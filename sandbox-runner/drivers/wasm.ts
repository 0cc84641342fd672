import type { QuickJSHandle } from 'quickjs-emscripten';
import { AgonError, asAgonError } from '../../services/kernel/index.js';
import { type Bundle, bundleOf } from '../bundles/bundle.js';
import { jsonOf } from '../json.js';
import type { Limits } from '../limits.js';
import {
  type AgentInstance,
  type Completion,
  type Driver,
  type Fault,
  type FaultRule,
  fault,
  type LoadOptions,
  type Reply,
  randomStart,
  type SourceCheck,
  sourceTooLarge,
  type Trouble,
} from './driver.js';
import { moduleRoot, QuickJsMachine } from './quickjs-machine.js';
import { findScriptHandlers } from './quickjs-prelude.js';

const fileName = 'agent.js';

const noAct =
  'the source defines no act(observation); write function act(observation) {...}, export it, or export default { act }';

interface Code {
  readonly name: string;
  readonly source: string;
  readonly kind: 'global' | 'module';
}

/** The files of a bundle that can be imported: code, and data as a default export. The engine ends a text at a NUL. */
function modulesOf({ files }: Bundle): Map<string, string> {
  const modules = new Map<string, string>();
  for (const [path, content] of files) {
    const text = content.toString();
    if (/\.m?js$/.test(path) && !text.includes('\0')) modules.set(moduleRoot + path, text);
    if (path.endsWith('.json')) modules.set(moduleRoot + path, `export default JSON.parse(${JSON.stringify(text)});`);
  }
  return modules;
}

const trouble = (rule: FaultRule, detail: string): Trouble => ({ rule, detail });

const outOfMemory = trouble('out_of_memory', 'InternalError: out of memory');

/**
 * Errors of the engine itself look like any other error to the agent's code, so they are told apart by their text. When
 * there is no memory left even for an error object, QuickJS throws null instead.
 */
function classify(machine: QuickJsMachine, detail: string): Trouble {
  const starved = detail === 'threw null' && machine.memoryDenied;
  if (starved || detail.startsWith('InternalError: out of memory')) return outOfMemory;
  return trouble('crash', detail);
}

const driverName = 'wasm';
/** The engine's release and the prelude's: a record made by another one need not replay. */
const driverVersion = 'quickjs-emscripten 0.32.0, prelude 2';

/** What comes from a network is never twice the same, and this driver's whole point is to be. */
export const noEgress = (): AgonError =>
  new AgonError(
    'EGRESS.NOT_WITH_DRIVER',
    'The wasm driver is deterministic and has no egress. Submit the agent with the runtime node or python.',
    { driver: driverName },
  );

class WasmAgent implements AgentInstance {
  readonly driver = driverName;
  readonly driverVersion = driverVersion;
  readonly meter = 'fuel';
  private failed: Fault | undefined;
  private fuel = 0;
  private budgetFuel = 0;
  private peakMemoryBytes: number | undefined;

  constructor(
    private readonly source: string,
    private readonly options: LoadOptions,
    private machine: QuickJsMachine | undefined,
    private readonly release: (machine: QuickJsMachine) => void,
  ) {}

  get usage() {
    // Looking for the peak means reading memory, so it is done when somebody asks and not after every turn.
    if (this.machine && this.peakMemoryBytes === undefined) this.peakMemoryBytes = this.machine.peakMemoryBytes;
    return { fuel: this.fuel, peakMemoryBytes: this.peakMemoryBytes ?? 0 };
  }

  async init(config: unknown, fuel: number): Promise<Completion | Fault> {
    const answer = this.run(fuel, (machine) => this.bootIn(machine) ?? this.invoke(machine, 'init', config));
    return answer.kind === 'fault' ? answer : { kind: 'done', fuel: answer.fuel };
  }

  /** Runs the top level only, which is all that a check at submission needs. */
  boot(fuel: number): Fault | undefined {
    const answer = this.run(fuel, (machine) => this.bootIn(machine) ?? 'null');
    return answer.kind === 'fault' ? answer : undefined;
  }

  async act(observation: unknown, fuel: number): Promise<Reply | Fault> {
    const answer = this.run(fuel, (machine) => this.invoke(machine, 'act', observation));
    if (answer.kind === 'fault') return answer;
    return { kind: 'reply', value: JSON.parse(answer.text), fuel: answer.fuel };
  }

  async onResult(result: unknown, fuel: number): Promise<Completion | Fault> {
    const answer = this.run(fuel, (machine) => this.invoke(machine, 'onResult', result));
    return answer.kind === 'fault' ? answer : { kind: 'done', fuel: answer.fuel };
  }

  log(): string {
    const machine = this.machine;
    if (machine === undefined || machine.trapped) return '';
    machine.fuelLimit = machine.fuelUsed + 1;
    try {
      const result = machine.call('log');
      return result.error ? '' : machine.context.getString(result.value).slice(0, this.options.limits.logBytes);
    } catch {
      machine.trapped = true;
      return '';
    }
  }

  dispose(): void {
    const machine = this.machine;
    if (machine === undefined) return;
    this.peakMemoryBytes = this.usage.peakMemoryBytes;
    this.machine = undefined;
    this.release(machine);
  }

  /** The one way into the sandbox: measures fuel, drains promises, and turns every kind of failure into a fault. */
  private run(
    fuel: number,
    step: (machine: QuickJsMachine) => string | Trouble,
  ): { kind: 'text'; text: string; fuel: number } | Fault {
    if (this.failed) return { ...this.failed, fuel: 0 };
    const machine = this.machine;
    if (machine === undefined) return fault('crash', 'the agent has been disposed of', 0);
    const before = machine.fuelUsed;
    this.budgetFuel = fuel;
    this.peakMemoryBytes = undefined;
    machine.fuelLimit = before + fuel;
    const answer = this.attempt(machine, step);
    const used = Math.min(machine.fuelUsed - before, fuel);
    this.fuel += used;
    if (typeof answer === 'string') return { kind: 'text', text: answer, fuel: used };
    this.failed = fault(answer.rule, answer.detail, used);
    return this.failed;
  }

  private attempt(machine: QuickJsMachine, step: (machine: QuickJsMachine) => string | Trouble): string | Trouble {
    try {
      const answer = step(machine);
      if (machine.exhausted) return this.outOfFuel();
      return answer;
    } catch (error) {
      // An exception of the host's own engine came through WebAssembly frames; they will never be unwound properly.
      machine.trapped = true;
      if (machine.exhausted) return this.outOfFuel();
      const message = error instanceof Error ? error.message : String(error);
      if (/call stack/i.test(message)) return trouble('crash', 'InternalError: stack overflow');
      if (machine.memoryDenied) return outOfMemory;
      return trouble('crash', `the sandbox broke down: ${message}`);
    }
  }

  private bootIn(machine: QuickJsMachine): Trouble | undefined {
    const { limits } = this.options;
    const tooLarge = sourceTooLarge(this.source, limits);
    if (tooLarge) return tooLarge;
    const { context, runtime } = machine;
    runtime.setMaxStackSize(limits.stackBytes);
    const { words } = randomStart(this.options);
    machine.call('start', ...[...words, limits.replyBytes, limits.logBytes].map((value) => context.newNumber(value)));

    const found = this.evaluate(machine);
    if ('rule' in found) return found;
    if (!('value' in found)) return this.explain(machine, found.error);
    const bound = machine.call('bind', found.value);
    if (bound.error) return this.explain(machine, bound.error);
    return context.dump(bound.value) === true ? undefined : trouble('no_act', noAct);
  }

  /** Runs the top level, and answers with whatever holds the agent's functions. */
  private evaluate(machine: QuickJsMachine): { value: QuickJSHandle } | { error: QuickJSHandle } | Trouble {
    const code = this.code(machine);
    if ('rule' in code) return code;
    const ran = machine.context.evalCode(code.source, code.name, { type: code.kind });
    if (ran.error) {
      const why = this.explain(machine, ran.error);
      // A module, and whatever it imports, is parsed only now.
      const late = code.kind === 'module' && /^(SyntaxError|Error: Cannot import )/.test(why.detail);
      return late ? { ...why, rule: 'syntax_error' } : why;
    }
    const drained = this.drain(machine);
    if (drained) return drained;
    return code.kind === 'global'
      ? machine.context.evalCode(findScriptHandlers, 'find.js')
      : this.exports(machine, ran.value);
  }

  /** What to run. The files of a bundle are modules, its entry too; only a file of its own may be a plain script. */
  private code(machine: QuickJsMachine): Code | Trouble {
    try {
      const bundle = bundleOf(this.source);
      if (bundle === undefined) {
        const kind = this.parse(machine);
        return typeof kind === 'string' ? { name: fileName, source: this.source, kind } : kind;
      }
      machine.modules = modulesOf(bundle);
      const name = moduleRoot + bundle.entry;
      return { name, source: machine.modules.get(name) ?? '', kind: 'module' };
    } catch (error) {
      return trouble('syntax_error', asAgonError(error).message);
    }
  }

  /** A module that awaits at its top level evaluates to a promise of its exports, any other to the exports. */
  private exports(machine: QuickJsMachine, value: QuickJSHandle): { value: QuickJSHandle } | Trouble {
    const state = machine.context.getPromiseState(value);
    if (state.type === 'fulfilled') return { value: state.value };
    if (state.type === 'rejected') return this.explain(machine, state.error);
    return trouble('no_act', 'the top level of the source awaits something that never happens');
  }

  /**
   * Plain scripts and modules are both welcome, and whatever is a script is run as one. When it is neither, the author
   * most likely meant a module if the source speaks of exports, so that is the error worth showing.
   */
  private parse(machine: QuickJsMachine): 'global' | 'module' | Trouble {
    const { context } = machine;
    const asScript = context.evalCode(this.source, fileName, { type: 'global', compileOnly: true });
    if (!asScript.error) return 'global';
    // A module is only parsed as it runs: the engine's value of a module that was compiled alone is not sound.
    if (/\b(export|import|await)\b/.test(this.source)) return 'module';
    return { ...this.explain(machine, asScript.error), rule: 'syntax_error' };
  }

  private invoke(machine: QuickJsMachine, name: 'init' | 'act' | 'onResult', argument: unknown): string | Trouble {
    const { context } = machine;
    const text = context.newString(JSON.stringify(argument));
    const result = machine.call(name, text);
    if (result.error) return this.explain(machine, result.error);
    const drained = this.drain(machine);
    if (drained) return drained;
    let answer = context.getString(result.value);
    if (answer === 'P') {
      const settled = machine.call('settled');
      if (settled.error) return this.explain(machine, settled.error);
      answer = context.getString(settled.value);
    }
    // Only `act` has a reply; what the other two return is nobody's business, but what they throw is.
    if (name !== 'act' && !answer.startsWith('E')) return 'null';
    return this.readAnswer(machine, answer);
  }

  private readAnswer(machine: QuickJsMachine, answer: string): string | Trouble {
    const body = answer.slice(1);
    const { replyBytes } = this.options.limits;
    switch (answer[0]) {
      case 'R': {
        if (Buffer.byteLength(body) > replyBytes) return trouble('reply_too_large', `more than ${replyBytes} bytes`);
        return jsonOf(body) === undefined ? trouble('bad_reply', 'the reply is not JSON') : body;
      }
      case 'L':
        return trouble('reply_too_large', `the reply has ${body} characters, ${replyBytes} bytes are allowed`);
      case 'B':
        // Only the engine itself throws internal errors: it ran out of something while it wrote the reply.
        return body.startsWith('InternalError') ? classify(machine, body) : trouble('bad_reply', body);
      case 'P':
        return trouble('bad_reply', 'act returned a promise that never settles');
      default:
        return classify(machine, body);
    }
  }

  /** Runs what the agent has put off with promises, on the same fuel as the call that put it off. */
  private drain(machine: QuickJsMachine): Trouble | undefined {
    while (machine.runtime.hasPendingJob()) {
      const jobs = machine.runtime.executePendingJobs(64);
      if (jobs.error) return this.explain(machine, jobs.error);
      // A job that only queues the next one polls too rarely to burn fuel by itself, so each batch costs one tick.
      machine.fuelUsed += 1;
      if (machine.exhausted) return this.outOfFuel();
    }
    return undefined;
  }

  private outOfFuel(): Trouble {
    return trouble('out_of_fuel', `stopped after ${this.budgetFuel} ticks of fuel`);
  }

  private explain(machine: QuickJsMachine, error: QuickJSHandle): Trouble {
    if (machine.exhausted) return this.outOfFuel();
    const described = machine.call('describe', error);
    const detail = described.error ? 'threw null' : machine.context.getString(described.value);
    return classify(machine, detail);
  }
}

/** The driver that works on every system: QuickJS in WebAssembly, deterministic to the byte. */
export class WasmDriver implements Driver {
  readonly name = driverName;
  readonly version = driverVersion;
  readonly meter = 'fuel';
  private readonly idle: QuickJsMachine[] = [];

  async load(source: string, options: LoadOptions): Promise<AgentInstance> {
    return this.open(source, options);
  }

  async check(source: string, limits: Limits): Promise<SourceCheck> {
    const agent = await this.open(source, { seed: 'check', seat: 0, limits });
    try {
      const failed = agent.boot(limits.initFuel);
      return failed ? { ok: false, rule: failed.rule, detail: failed.detail } : { ok: true };
    } finally {
      agent.dispose();
    }
  }

  /** Prepares machines ahead of the first match. */
  async warm(count: number, limits: Limits): Promise<void> {
    for (let made = 0; made < count; made += 1) this.idle.push(await QuickJsMachine.create(limits.memoryBytes));
  }

  async close(): Promise<void> {
    this.idle.length = 0;
  }

  private async open(source: string, options: LoadOptions): Promise<WasmAgent> {
    if (options.endpoint) throw noEgress();
    const { memoryBytes } = options.limits;
    const index = this.idle.findIndex((machine) => machine.memoryBytes === memoryBytes);
    const machine = this.idle.splice(index, index < 0 ? 0 : 1)[0] ?? (await QuickJsMachine.create(memoryBytes));
    return new WasmAgent(source, options, machine, (used) => this.takeBack(used));
  }

  private takeBack(machine: QuickJsMachine): void {
    // Two serve a match; a few more cover jobs with other limits without hoarding memory.
    if (this.idle.length < 4 && machine.rewind()) this.idle.push(machine);
  }
}
