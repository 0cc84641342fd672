import { createRequire } from 'node:module';
import { whyNoProcessSandboxes } from '../../sandbox-runner/index.js';
import { whyNoAnvil } from './anvil.js';
import { whyNoDeployTools } from './deploy-tools.js';
import { whyNoKafka } from './kafka.js';
import { whyNoPythonClient } from './kurrentdb-python.js';
import { whyNoPythonSdk } from './python-sdk.js';
import { whyNoRedis } from './redis.js';
import { whyNoSchemathesis } from './schemathesis.js';
import { whyNoStripeMock } from './stripe-mock.js';

/** Why ClickHouse cannot run here; undefined when it can. */
export function whyNoChdb(): string | undefined {
  try {
    createRequire(import.meta.url).resolve('chdb/connection');
    return undefined;
  } catch {
    return 'the optional package chdb is not installed, or not made for this system';
  }
}

/** The engines that specs can do without, each with why it is not here, if it is not. */
const ENGINES: Readonly<Record<string, () => string | undefined>> = {
  Redis: whyNoRedis,
  Kafka: whyNoKafka,
  ClickHouse: whyNoChdb,
  'process sandboxes': whyNoProcessSandboxes,
  'the Python of the SDK': whyNoPythonSdk,
  "EventStoreDB's client for Python": whyNoPythonClient,
  anvil: whyNoAnvil,
  'stripe-mock': whyNoStripeMock,
  schemathesis: whyNoSchemathesis,
  'the tools of Compose and Kubernetes': whyNoDeployTools,
};

/** What is missing on this machine, each with how to get it. */
export const missingEngines = (): readonly { readonly engine: string; readonly why: string }[] =>
  Object.entries(ENGINES).flatMap(([engine, whyNot]) => {
    const why = whyNot();
    return why === undefined ? [] : [{ engine, why }];
  });
