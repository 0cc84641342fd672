import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyServerOptions } from 'fastify';
import { AgonError } from '../services/kernel/index.js';
import type { Config } from '../services/runtime/settings.js';
import { answersOf } from './answers.js';
import { assertAnswerable, readDocuments } from './graphql/documents.js';
import { ResponseCache } from './graphql/response-cache.js';
import { serveSubscriptions } from './graphql/socket.js';
import { Listeners } from './live/listener.js';
import { gatewayModule } from './module.js';
import { watchGraphql, watchHttp } from './observe.js';
import type { GatewayPorts } from './ports.js';
import { problemOf } from './problem.js';
import { serveRest } from './rest/serve.js';
import { guard } from './safety.js';

/** The gateway over HTTP, ready to listen. */
export async function createGateway(config: Config, ports: GatewayPorts): Promise<INestApplication> {
  const { introspection, proxies, corsOrigins } = config;
  const documents = config.persistedQueries === undefined ? undefined : readDocuments(config.persistedQueries);
  const remembered = new ResponseCache(ports);
  const module = gatewayModule({ ports, introspection, documents, remembered });
  const adapter = new FastifyAdapter({
    bodyLimit: 2 * 1024 * 1024,
    forceCloseConnections: true,
    requestTimeout: 60_000,
    // What cannot be read as an address never comes to a route.
    frameworkErrors: refuseAddress as never,
    trustProxy: (_address: string, hop: number) => hop < proxies,
  });
  const fastify = adapter.getInstance() as FastifyInstance;
  watchHttp(fastify, ports);
  guard(fastify, ports, { proxies });
  await serveSubscriptions(fastify, { ports, introspection, corsOrigins, documents });
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    logger: false,
    // Webhooks are signed as they were sent, byte by byte.
    rawBody: true,
  });
  const rest = {
    ports,
    answers: answersOf(ports),
    origins: corsOrigins,
    listeners: new Listeners(),
  };
  serveRest(fastify, rest, ports.version);
  if (corsOrigins.length > 0) app.enableCors({ origin: [...corsOrigins] });
  await app.init();
  watchGraphql(fastify, ports);
  remembered.watch(fastify);
  await fastify.ready();
  if (documents) assertAnswerable(documents, fastify.graphql.schema);
  return app;
}

const refuseAddress: NonNullable<FastifyServerOptions['frameworkErrors']> = (error, _request, reply) => {
  const problem = problemOf(new AgonError('QUERY.INVALID', error.message));
  void reply
    .status(problem.status as never)
    .type('application/problem+json')
    .send(problem as never);
};

/** Begins to listen, and says where. */
export async function listen(app: INestApplication, config: Config): Promise<string> {
  try {
    await app.listen(config.port, config.host);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') {
      throw new AgonError(
        'NET.PORT_IN_USE',
        `Port ${config.port} is in use. Choose another with --port, or 0 for any.`,
      );
    }
    const why = error instanceof Error ? error.message : String(error);
    throw new AgonError('NET.CANNOT_LISTEN', `Cannot listen on ${config.host}:${config.port}: ${why}.`);
  }
  return (await app.getUrl()).replace('[::1]', 'localhost');
}
