import { whyNoProcessSandboxes } from '../../sandbox-runner/index.js';
import { whyNoAnvil } from './anvil.js';
import { whyNoChdb } from './chdb.js';
import { whyNoDeployTools } from './deploy-tools.js';
import { whyNoKafka } from './kafka.js';
import { whyNoRedis } from './redis.js';
import { whyNoStripeMock } from './stripe-mock.js';
import { whyNoPythonClient, whyNoPythonSdk, whyNoSchemathesis } from './tools.js';

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
