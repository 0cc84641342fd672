import { describe } from 'vitest';
import { driverContract, nodeJs, python, quickJs } from './driver.contract.js';
import { ProcessDriver, whyNoProcessSandboxes } from './process.js';
import { WasmDriver } from './wasm.js';

driverContract('wasm', async () => new WasmDriver(), quickJs);

const why = whyNoProcessSandboxes();
describe.skipIf(why !== undefined)(`process sandboxes${why ? ` (${why})` : ''}`, () => {
  driverContract('process/python', () => ProcessDriver.open('python'), python);
  driverContract('process/node', () => ProcessDriver.open('node'), nodeJs);
});
