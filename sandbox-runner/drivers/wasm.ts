import type { QuickJSHandle } from 'quickjs-emscripten';
import { AgonError, asAgonError } from '../../services/kernel/index.js';
import { type Bundle, bundleOf } from '../bundles/bundle.js';
import { jsonOf } from '../json.js';
import type { Limits } from '../limits.js';
import {
  type AgentInstance,
  type Completion,
  checked,
  completed,
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
  readonly type: 'global' | 'module';
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

/** Ends a call for which the agent is to blame, with the machine still in order. */
class Stop extends Error {
  constructor(readonly trouble: Trouble) {
    super(trouble.detail);
  }
}

const stopped = (rule: FaultRule, detail: string): Stop => new Stop({ rule, detail });

const outOfMemory: Trouble = { rule: 'out_of_memory', detail: 'InternalError: out of memory' };

/**
 * Errors of the engine itself look like any other error to the agent's code, so they are told apart by their text. When
 * there is no memory left even for an error object, QuickJS throws null instead.
 */
function classify(machine: QuickJsMachine, detail: string): Stop {
  const starved = detail === 'threw null' && machine.memoryDenied;
  if (starved || detail.startsWith(outOfMemory.detail)) return new Stop(outOfMemory);
  return stopped('crash', detail);
}

/** `run` says how much it was. Nothing runs any more, not even to find out what else there is to say. */
const outOfFuel = (): Stop => stopped('out_of_fuel', 'no fuel is left');

function explain(machine: QuickJsMachine, error: QuickJSHandle): Stop {
  if (machine.exhausted) return outOfFuel();
  const described = machine.call('describe', error);
  return classify(machine, described.error ? 'threw null' : machine.context.getString(described.value));
}

function unwrap(machine: QuickJsMachine, result: ReturnType<QuickJsMachine['call']>): QuickJSHandle {
  if (result.error) throw explain(machine, result.error);
  return result.value;
}

/** Runs what the agent has put off with promises, on the same fuel as the call that put it off. */
function drain(machine: QuickJsMachine): void {
  while (machine.runtime.hasPendingJob()) {
    const jobs = machine.runtime.executePendingJobs(64);
    if (jobs.error) throw explain(machine, jobs.error);
    // A job that only queues the next one polls too rarely to burn fuel by itself, so each batch costs one tick.
    machine.fuelUsed += 1;
    if (machine.exhausted) throw outOfFuel();
  }
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
    return completed(
      this.run(fuel, (machine) => {
        this.bootIn(machine);
        this.invoke(machine, 'init', config);
      }),
    );
  }

  /** Runs the top level only, which is all that a check at submission needs. */
  async boot(fuel: number): Promise<Completion | Fault> {
    return completed(this.run(fuel, (machine) => this.bootIn(machine)));
  }

  async act(observation: unknown, fuel: number): Promise<Reply | Fault> {
    return this.run(fuel, (machine) => this.invoke(machine, 'act', observation));
  }

  async onResult(result: unknown, fuel: number): Promise<Completion | Fault> {
    return completed(this.run(fuel, (machine) => this.invoke(machine, 'onResult', result)));
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
  private run(fuel: number, step: (machine: QuickJsMachine) => unknown): Reply | Fault {
    if (this.failed) return { ...this.failed, fuel: 0 };
    const machine = this.machine;
    if (machine === undefined) return fault('crash', 'the agent has been disposed of', 0);
    const before = machine.fuelUsed;
    this.peakMemoryBytes = undefined;
    machine.fuelLimit = before + fuel;
    const answer = attempt(machine, step);
    const used = Math.min(machine.fuelUsed - before, fuel);
    this.fuel += used;
    if (machine.exhausted) this.failed = fault('out_of_fuel', `stopped after ${fuel} ticks of fuel`, used);
    else if ('value' in answer) return { kind: 'reply', value: answer.value, fuel: used };
    else this.failed = fault(answer.rule, answer.detail, used);
    return this.failed;
  }

  private bootIn(machine: QuickJsMachine): void {
    const { limits } = this.options;
    const tooLarge = sourceTooLarge(this.source, limits);
    if (tooLarge) throw new Stop(tooLarge);
    const { context, runtime } = machine;
    runtime.setMaxStackSize(limits.stackBytes);
    const { words } = randomStart(this.options);
    machine.call('start', ...[...words, limits.replyBytes, limits.logBytes].map((value) => context.newNumber(value)));
    const bound = unwrap(machine, machine.call('bind', this.evaluate(machine)));
    if (context.dump(bound) !== true) throw stopped('no_act', noAct);
  }

  /** Runs the top level, and answers with whatever holds the agent's functions. */
  private evaluate(machine: QuickJsMachine): QuickJSHandle {
    const { context } = machine;
    const { name, source, type } = this.code(machine);
    const ran = context.evalCode(source, name, { type });
    if (ran.error) {
      const { trouble } = explain(machine, ran.error);
      // A module, and whatever it imports, is parsed only now.
      const late = type === 'module' && /^(SyntaxError|Error: Cannot import )/.test(trouble.detail);
      throw new Stop(late ? { ...trouble, rule: 'syntax_error' } : trouble);
    }
    drain(machine);
    if (type === 'module') return exportsOf(machine, ran.value);
    return unwrap(machine, context.evalCode(findScriptHandlers, 'find.js'));
  }

  /** What to run. The files of a bundle are modules, its entry too; only a file of its own may be a plain script. */
  private code(machine: QuickJsMachine): Code {
    const bundle = this.bundle();
    if (bundle === undefined) return { name: fileName, source: this.source, type: this.parse(machine) };
    machine.modules = modulesOf(bundle);
    const name = moduleRoot + bundle.entry;
    return { name, source: machine.modules.get(name) ?? '', type: 'module' };
  }

  private bundle(): Bundle | undefined {
    try {
      return bundleOf(this.source);
    } catch (error) {
      throw stopped('syntax_error', asAgonError(error).message);
    }
  }

  /**
   * Plain scripts and modules are both welcome, and whatever is a script is run as one. When it is neither, the author
   * most likely meant a module if the source speaks of exports, so that is the error worth showing.
   */
  private parse(machine: QuickJsMachine): Code['type'] {
    const asScript = machine.context.evalCode(this.source, fileName, { type: 'global', compileOnly: true });
    if (!asScript.error) return 'global';
    // A module is only parsed as it runs: the engine's value of a module that was compiled alone is not sound.
    if (/\b(export|import|await)\b/.test(this.source)) return 'module';
    throw stopped('syntax_error', explain(machine, asScript.error).message);
  }

  private invoke(machine: QuickJsMachine, name: 'init' | 'act' | 'onResult', argument: unknown): unknown {
    const { context } = machine;
    const called = unwrap(machine, machine.call(name, context.newString(JSON.stringify(argument))));
    drain(machine);
    let answer = context.getString(called);
    if (answer === 'P') answer = context.getString(unwrap(machine, machine.call('settled')));
    // Only `act` has a reply; what the other two return is nobody's business, but what they throw is.
    if (name !== 'act' && !answer.startsWith('E')) return undefined;
    return this.readAnswer(machine, answer);
  }

  private readAnswer(machine: QuickJsMachine, answer: string): unknown {
    const body = answer.slice(1);
    const { replyBytes } = this.options.limits;
    switch (answer[0]) {
      case 'R': {
        if (Buffer.byteLength(body) > replyBytes) throw stopped('reply_too_large', `more than ${replyBytes} bytes`);
        const value = jsonOf(body);
        if (value === undefined) throw stopped('bad_reply', 'the reply is not JSON');
        return value;
      }
      case 'L':
        throw stopped('reply_too_large', `the reply has ${body} characters, ${replyBytes} bytes are allowed`);
      case 'B':
        // Only the engine itself throws internal errors: it ran out of something while it wrote the reply.
        throw body.startsWith('InternalError') ? classify(machine, body) : stopped('bad_reply', body);
      case 'P':
        throw stopped('bad_reply', 'act returned a promise that never settles');
      default:
        throw classify(machine, body);
    }
  }
}

function attempt(machine: QuickJsMachine, step: (machine: QuickJsMachine) => unknown): { value: unknown } | Trouble {
  try {
    return { value: step(machine) };
  } catch (error) {
    if (error instanceof Stop) return error.trouble;
    // An exception of the host's own engine came through WebAssembly frames; they will never be unwound properly.
    machine.trapped = true;
    const message = error instanceof Error ? error.message : String(error);
    if (/call stack/i.test(message)) return { rule: 'crash', detail: 'InternalError: stack overflow' };
    if (machine.memoryDenied) return outOfMemory;
    return { rule: 'crash', detail: `the sandbox broke down: ${message}` };
  }
}

/** A module that awaits at its top level evaluates to a promise of its exports, any other to the exports. */
function exportsOf(machine: QuickJsMachine, value: QuickJSHandle): QuickJSHandle {
  const state = machine.context.getPromiseState(value);
  if (state.type === 'fulfilled') return state.value;
  if (state.type === 'rejected') throw explain(machine, state.error);
  throw stopped('no_act', 'the top level of the source awaits something that never happens');
}

/** The driver that works on every system: QuickJS in WebAssembly, deterministic to the byte. */
export class WasmDriver implements Driver {
  readonly name = driverName;
  readonly version = driverVersion;
  readonly meter = 'fuel';
  private readonly idle: QuickJsMachine[] = [];

  async load(source: string, options: LoadOptions): Promise<WasmAgent> {
    if (options.endpoint) throw noEgress();
    const { memoryBytes } = options.limits;
    const index = this.idle.findIndex((machine) => machine.memoryBytes === memoryBytes);
    const machine = this.idle.splice(index, index < 0 ? 0 : 1)[0] ?? (await QuickJsMachine.create(memoryBytes));
    return new WasmAgent(source, options, machine, (used) => this.takeBack(used));
  }

  async check(source: string, limits: Limits): Promise<SourceCheck> {
    return checked(await this.load(source, { seed: 'check', seat: 0, limits }), limits.initFuel);
  }

  /** Prepares machines ahead of the first match. */
  async warm(count: number, limits: Limits): Promise<void> {
    for (let made = 0; made < count; made += 1) this.idle.push(await QuickJsMachine.create(limits.memoryBytes));
  }

  async close(): Promise<void> {
    this.idle.length = 0;
  }

  private takeBack(machine: QuickJsMachine): void {
    // Two serve a match; a few more cover jobs with other limits without hoarding memory.
    if (this.idle.length < 4 && machine.rewind()) this.idle.push(machine);
  }
}
