import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime,
  RELEASE_SYNC,
} from 'quickjs-emscripten';
import { invariant } from '../../services/kernel/index.js';
import { prelude } from './quickjs-prelude.js';

/** The part of the WebAssembly interface used here; the compiler only knows it together with a browser's types. */
interface WasmMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}
interface WasmEngine {
  compile(bytes: Uint8Array): Promise<object>;
  Memory: new (shape: { initial: number; maximum: number }) => WasmMemory;
}
const { WebAssembly: engine } = globalThis as unknown as { WebAssembly: WasmEngine };

const pageBytes = 65_536;
const initialPages = 256;
/** Most agents never need more than this, and a machine that did not grow can be rewound instead of replaced. */
const roomBytes = 1024 * 1024;
/** Larger than the largest stack that limits allow, 512 KiB. */
const stackGapPages = 9;
const zeroPage = Buffer.alloc(pageBytes);

const functionNames = ['start', 'bind', 'describe', 'init', 'act', 'onResult', 'settled', 'log'] as const;
type FunctionName = (typeof functionNames)[number];

const noModules: ReadonlyMap<string, string> = new Map();

/** Where the files of a bundle are to their own code; a stack trace names them so, too. */
export const moduleRoot = 'agent/';

/**
 * The name of what a module imports. Only a path that starts with a dot is one, and it cannot climb out of the root:
 * everything else keeps a name that no module has.
 */
function moduleName(from: string, request: string): string {
  if (!/^\.\.?\//.test(request) || !from.startsWith(moduleRoot)) return JSON.stringify(request);
  const parts = from.slice(moduleRoot.length).split('/').slice(0, -1);
  for (const part of request.split('/')) {
    if (part === '..' && parts.pop() === undefined) return JSON.stringify(request);
    if (part !== '.' && part !== '..') parts.push(part);
  }
  return moduleRoot + parts.join('/');
}

let compiled: Promise<object> | undefined;

function compileEngine(): Promise<object> {
  const require = createRequire(import.meta.url);
  const file = createRequire(require.resolve('quickjs-emscripten')).resolve('@jitl/quickjs-wasmfile-release-sync/wasm');
  compiled ??= readFile(file).then((bytes) => engine.compile(bytes));
  return compiled;
}

/**
 * One WebAssembly instance with one QuickJS runtime and context, for one agent at a time.
 *
 * QuickJS counts memory wrongly under Emscripten, and it corrupts its own heap in some out-of-memory paths. So the cap
 * is the maximum of the WebAssembly memory itself, every seat has an instance of its own, and nothing is ever freed or
 * reused piecemeal: `rewind` puts the whole memory back, byte for byte, to what it was before any agent ran. A machine
 * that trapped or grew cannot be rewound and is dropped. A match therefore never depends on the matches before it.
 */
export class QuickJsMachine {
  readonly context: QuickJSContext;
  /** Set when the engine asked for more memory than there is, even if it then managed with less. */
  memoryDenied = false;
  /** Set when the host saw WebAssembly itself fail: the instance is then in no defined state. */
  trapped = false;
  fuelUsed = 0;
  fuelLimit = 0;
  /** What an agent may import, by name: the files of its bundle and nothing else. There is no file system behind it. */
  modules: ReadonlyMap<string, string> = noModules;
  private readonly functions: ReadonlyMap<FunctionName, QuickJSHandle>;
  /** What the pages in use held before any agent ran. */
  private readonly pristine = new Map<number, Buffer>();
  /** The native stack: zeros below the heap, filled from its upper end. */
  private stackPages: { readonly from: number; readonly to: number } = { from: 0, to: 0 };
  private basePage = 0;

  private constructor(
    private readonly memory: WasmMemory,
    readonly memoryBytes: number,
    readonly runtime: QuickJSRuntime,
  ) {
    this.fuelLimit = Number.MAX_SAFE_INTEGER;
    runtime.setInterruptHandler(() => {
      this.fuelUsed += 1;
      return this.fuelUsed > this.fuelLimit;
    });
    // Enabled before the snapshot, so that a rewind does not switch it off.
    runtime.setModuleLoader(
      (name) => this.modules.get(name) ?? { error: new Error(`Cannot import ${name}: it is not in the bundle`) },
      moduleName,
    );
    this.context = runtime.newContext();
    const found = this.context.unwrapResult(this.context.evalCode(prelude, 'prelude.js'));
    this.functions = new Map(functionNames.map((name) => [name, this.context.getProp(found, name)]));
    // The wrapper makes these on first use; made after the snapshot they would dangle after a rewind.
    invariant(this.context.global.alive && this.context.undefined.alive, 'A new context has a global object.');
  }

  static async create(memoryBytes: number): Promise<QuickJsMachine> {
    const maximum = initialPages + Math.floor((memoryBytes - roomBytes) / pageBytes);
    const memory = new engine.Memory({ initial: initialPages, maximum });
    const variant = newVariant(RELEASE_SYNC, {
      wasmModule: (await compileEngine()) as never,
      wasmMemory: memory as never,
      // Aborts are reported as faults; Emscripten would also print them.
      emscriptenModule: { printErr: () => {} } as never,
    });
    const module = await newQuickJSWASMModuleFromVariant(variant);
    const machine = new QuickJsMachine(memory, memoryBytes, module.newRuntime());
    machine.takeSnapshot();
    return machine;
  }

  get exhausted(): boolean {
    return this.fuelUsed > this.fuelLimit;
  }

  /** Linear memory touched beyond the empty sandbox, in whole pages; the first page is always in part the agent's. */
  get peakMemoryBytes(): number {
    return (this.topPage() - this.basePage + 1) * pageBytes;
  }

  call(name: FunctionName, ...args: QuickJSHandle[]) {
    const handle = this.functions.get(name);
    invariant(handle, `The prelude has no function ${name}.`);
    return this.context.callFunction(handle, this.context.undefined, ...args);
  }

  /** Puts the machine back to its first state. Answers false when it has to be dropped instead. */
  rewind(): boolean {
    if (this.trapped || this.memoryDenied || this.memory.buffer.byteLength !== initialPages * pageBytes) return false;
    const top = this.topPage();
    for (const [page, content] of this.pristine) content.copy(this.page(page));
    this.clearStack();
    for (let page = this.basePage; page < top; page += 1) this.page(page).fill(0);
    this.fuelUsed = 0;
    this.fuelLimit = 0;
    this.modules = noModules;
    return true;
  }

  /** No frame is as large as the span of clean pages that ends the search, so nothing below it was ever written. */
  private clearStack(): void {
    const { from, to } = this.stackPages;
    for (let page = to - 1, clean = 0; page >= from && clean < stackGapPages; page -= 1) {
      const content = this.page(page);
      clean = content.equals(zeroPage) ? clean + 1 : 0;
      if (clean === 0) content.fill(0);
    }
  }

  private page(page: number): Buffer {
    return Buffer.from(this.memory.buffer, page * pageBytes, pageBytes);
  }

  private topPage(): number {
    let page = this.memory.buffer.byteLength / pageBytes;
    while (page > this.basePage && this.page(page - 1).equals(zeroPage)) page -= 1;
    return page;
  }

  /**
   * The instance starts with 16 MiB, more than most agents ever touch. Ballast takes up all of that but `roomBytes`, so
   * that a snapshot is small, growth shows, and the cap means what it says. No agent can reach the ballast.
   */
  private takeSnapshot(): void {
    const firstFreePage = this.topPage();
    const ballastBytes = (initialPages - firstFreePage) * pageBytes - roomBytes;
    this.context.unwrapResult(this.context.evalCode(`new ArrayBuffer(${ballastBytes})`, 'ballast.js'));
    this.basePage = this.topPage();
    // Of the ballast, only the last page is used: there the allocator keeps its notes about what follows.
    for (const page of [...Array(firstFreePage + 1).keys(), this.basePage - 1]) {
      const content = this.page(page);
      if (!content.equals(zeroPage)) this.pristine.set(page, Buffer.from(content));
    }
    const unused = [...Array(firstFreePage).keys()].filter((page) => !this.pristine.has(page));
    this.stackPages = { from: unused[0] ?? 0, to: (unused.at(-1) ?? -1) + 1 };
    this.watchGrowth();
    this.fuelUsed = 0;
    this.fuelLimit = 0;
  }

  private watchGrowth(): void {
    const grow = this.memory.grow.bind(this.memory);
    this.memory.grow = (pages) => {
      try {
        return grow(pages);
      } catch (error) {
        this.memoryDenied = true;
        throw error;
      }
    };
  }
}
