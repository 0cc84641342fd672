import { Controller, Get, Header, Inject, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { type GatewayPorts, PORTS } from '../ports.js';

/** What orchestrators and people ask first. */
@Controller()
export class HealthController {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  /** The process is alive. */
  @Get('healthz')
  healthz() {
    return { status: 'ok', version: this.ports.version };
  }

  /** Every part that is needed works; otherwise 503 and which one does not, and why. */
  @Get('readyz')
  async readyz(@Res() reply: FastifyReply) {
    const parts = await this.ports.status();
    const ready = parts.every((part) => part.ready || part.optional);
    await reply.status(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready', parts });
  }

  @Get('metrics')
  @Header('Content-Type', 'text/plain; version=0.0.4; charset=utf-8')
  metrics() {
    return this.ports.metrics.metrics();
  }
}
