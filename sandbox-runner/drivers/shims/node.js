// Runs inside the sandbox, before and around an agent's code, and speaks the line protocol of the process driver.
// Nothing here is trusted: an agent that tampers with it can only spoil its own replies.

(async () => {
  const { readSync, writeSync } = require('node:fs');
  const vm = require('node:vm');
  const { parse, stringify } = JSON;
  const { from, alloc, concat, byteLength } = Buffer;
  const exit = process.exit.bind(process);

  let pending = alloc(0);
  const chunk = alloc(1 << 16);
  const receive = () => {
    for (;;) {
      const end = pending.indexOf(10);
      if (end >= 0) {
        const line = pending.toString('utf8', 0, end);
        pending = from(pending.subarray(end + 1));
        return line;
      }
      const length = readSync(3, chunk);
      if (length === 0) exit(0);
      pending = concat([pending, chunk.subarray(0, length)]);
    }
  };
  const send = (text) => {
    let data = from(`${text}\n`);
    while (data.length > 0) data = data.subarray(writeSync(4, data));
  };

  const describe = (thrown) => {
    try {
      if (typeof thrown !== 'object' || thrown === null) return stringify(`threw ${String(thrown)}`.slice(0, 1000));
      const line = /(?:agent\.js|data:text\/javascript[^:\s]*|\/agent\/([^:\n]+)):(\d+)/.exec(
        String(thrown.stack ?? ''),
      );
      const where = line === null ? '' : ` (${line[1] ? `${line[1]}, ` : ''}line ${line[2]})`;
      return stringify(`${thrown.name ?? 'Error'}: ${thrown.message}`.slice(0, 1000) + where);
    } catch {
      return '"threw a value that cannot be shown"';
    }
  };

  // sfc32, seeded and drawn as in the wasm driver, so that an agent draws the same numbers in both.
  const seedRandom = ([seedA, seedB, seedC, seedD]) => {
    let [a, b, c, d] = [seedA, seedB, seedC, seedD];
    const draw = () => {
      const sum = (((a + b) | 0) + d) | 0;
      d = (d + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (c << 21) | (c >>> 11);
      c = (c + sum) | 0;
      return sum >>> 0;
    };
    for (let round = 0; round < 12; round += 1) draw();
    Math.random = () => ((draw() >>> 5) * 67108864 + (draw() >>> 6)) / 9007199254740992;
  };

  const handlers = { __proto__: null };
  let owner;
  const bind = (found) => {
    const whole = found.default;
    const holder = whole !== null && typeof whole === 'object' && typeof whole.act === 'function' ? whole : found;
    owner = holder === whole ? whole : undefined;
    for (const name of ['init', 'act', 'onResult']) {
      if (typeof holder[name] === 'function') handlers[name] = holder[name];
    }
    if (handlers.act === undefined && typeof whole === 'function') handlers.act = whole;
    return handlers.act === undefined ? 'N' : 'R';
  };

  const find = `;({
    init: typeof init === 'function' ? init : undefined,
    act: typeof act === 'function' ? act : undefined,
    onResult: typeof onResult === 'function' ? onResult : undefined,
  })`;
  const options = { filename: 'agent.js' };
  const dynamic = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  if (dynamic !== undefined) options.importModuleDynamically = dynamic;

  // The host has checked every path; whatever is wrong here could only spoil this sandbox's own files.
  const unpack = ({ entry, files }) => {
    const { mkdirSync, writeFileSync } = require('node:fs');
    const { dirname, join } = require('node:path');
    const folder = join(process.cwd(), 'agent');
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), typeof content === 'string' ? content : from(content.base64, 'base64'));
    }
    process.chdir(folder);
    return require('node:url').pathToFileURL(join(folder, entry)).href;
  };

  const bindModule = async (url) => {
    try {
      return bind(await import(url));
    } catch (error) {
      return (error instanceof SyntaxError ? 'S' : 'E') + describe(error);
    }
  };

  let replyBytes = 0;
  const boot = async (order) => {
    replyBytes = order.replyBytes;
    seedRandom(order.words);
    if (order.bundle !== undefined) return bindModule(unpack(order.bundle));
    let script;
    let scriptError;
    try {
      script = new vm.Script(order.source, options);
    } catch (error) {
      scriptError = error;
    }
    if (script !== undefined) {
      script.runInThisContext();
      return bind(vm.runInThisContext(find));
    }
    // Whatever is no script may be a module; the author meant one if the source speaks of exports.
    if (!/\b(export|import|await)\b/.test(order.source)) return `S${describe(scriptError)}`;
    return bindModule(`data:text/javascript;base64,${from(order.source).toString('base64')}`);
  };

  const call = async (verb, argument) => {
    const handler = handlers[verb];
    if (handler === undefined) return 'Rnull';
    let value = handler.call(owner, argument);
    if (value !== null && typeof value === 'object' && typeof value.then === 'function') value = await value;
    if (verb !== 'act') return 'Rnull';
    try {
      const text = stringify(value);
      if (typeof text !== 'string') return `B${stringify(`${typeof value} has no JSON form`)}`;
      return byteLength(text) > replyBytes ? `L${byteLength(text)}` : `R${text}`;
    } catch (thrown) {
      return `B${describe(thrown)}`;
    }
  };

  // With nothing left to wait for, Node would end in silence in the middle of a call.
  process.on('beforeExit', () => {
    send(`${token} B"returned a promise that never settles"`);
  });
  let token = '';
  send('ready');
  for (;;) {
    const line = receive();
    const afterToken = line.indexOf(' ');
    const afterVerb = line.indexOf(' ', afterToken + 1);
    token = line.slice(0, afterToken);
    const verb = line.slice(afterToken + 1, afterVerb);
    const body = line.slice(afterVerb + 1);
    let answer;
    try {
      const argument = parse(body);
      answer = await (verb === 'boot' ? boot(argument) : call(verb, argument));
    } catch (thrown) {
      answer = `E${describe(thrown)}`;
    }
    send(`${token} ${answer}`);
  }
})();
