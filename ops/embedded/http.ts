import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { gatewayModule } from '../../gateway/module.js';
import type { GatewayPorts } from '../../gateway/ports.js';
import { guard } from '../../gateway/safety.js';
import { contexts } from '../../services/index.js';
import { AgonError, type Config, type Handle } from '../../services/kernel/index.js';
import type { DataFolder } from './data-folder.js';

/** The gateway over HTTP, ready to listen. */
export async function createGateway(config: Config, ports: GatewayPorts, handle: Handle): Promise<INestApplication> {
  const { introspection, proxies, corsOrigins } = config;
  const module = gatewayModule({ contexts, handle, ports, introspection });
  const adapter = new FastifyAdapter({
    bodyLimit: 2 * 1024 * 1024,
    forceCloseConnections: true,
    requestTimeout: 60_000,
    trustProxy: (_address: string, hop: number) => hop < proxies,
  });
  guard(adapter.getInstance() as FastifyInstance, ports, { proxies });
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    logger: false,
    // Webhooks are signed as they were sent, byte by byte.
    rawBody: true,
  });
  if (corsOrigins.length > 0) app.enableCors({ origin: [...corsOrigins] });
  await app.init();
  await adapter.getInstance().ready();
  return app;
}

/** Opens the door, and says where it is. */
export async function listen(app: INestApplication, config: Config, folder: DataFolder): Promise<string> {
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
  const url = (await app.getUrl()).replace('[::1]', 'localhost');
  folder.announce(url);
  return url;
}
