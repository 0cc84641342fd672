import { Controller, Get, Header, Inject, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { type GatewayPorts, PORTS } from '../ports.js';

/** How long an answer is good for: many may ask at once, and each look asks every part. */
const LOOK_MS = 1_000;

/** What orchestrators and people ask first. */
@Controller()
export class HealthController {
  private readonly parts = momentary(() => this.ports.status(), LOOK_MS);
  /** Figures are never old, but those who ask while they are gathered get the same. */
  private readonly figures = momentary(() => this.ports.metrics.metrics(), 0);

  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  /** The process is alive. */
  @Get('healthz')
  healthz() {
    return { status: 'ok', version: this.ports.version };
  }

  /** Every part that is needed works; otherwise 503 and which one does not, and why. */
  @Get('readyz')
  async readyz(@Res() reply: FastifyReply) {
    const parts = await this.parts();
    const ready = parts.every((part) => part.ready || part.optional);
    await reply.status(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready', parts });
  }

  @Get('metrics')
  @Header('Content-Type', 'text/plain; version=0.0.4; charset=utf-8')
  metrics() {
    return this.figures();
  }
}

/** The same look for all who ask while it is under way, and for a while after. */
export function momentary<T>(look: () => Promise<T>, forMs: number): () => Promise<T> {
  let known: Promise<T> | undefined;
  const forget = () => {
    known = undefined;
  };
  return () => {
    known ??= look().finally(() => (forMs > 0 ? setTimeout(forget, forMs).unref() : forget()));
    return known;
  };
}
