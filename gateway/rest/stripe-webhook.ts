import {
  Controller,
  Get,
  Header,
  Headers,
  HttpCode,
  Inject,
  Post,
  Query,
  type RawBodyRequest,
  Req,
} from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyRequest } from 'fastify';
import { AgonError, derivedId, type Handled, newMeta } from '../../services/kernel/index.js';
import { TakeNotice } from '../../services/payments/index.js';
import { type GatewayPorts, PORTS, providerIn } from '../ports.js';

/** Stripe's own are a few kilobytes. */
export const WEBHOOK_BYTES_MAX = 256 * 1024;

/** Where Stripe tells what was paid. An event that is told twice is taken once, by its id. */
@Controller('v1/stripe')
export class StripeWebhookController {
  constructor(
    @Inject(PORTS) private readonly ports: GatewayPorts,
    @Inject(CommandBus) private readonly commands: CommandBus,
  ) {}

  @Post('webhook')
  @HttpCode(200)
  async webhook(@Req() request: RawBodyRequest<FastifyRequest>, @Headers('stripe-signature') signature = '') {
    const provider = providerIn(this.ports);
    const body = request.rawBody ?? Buffer.alloc(0);
    if (body.length > WEBHOOK_BYTES_MAX) {
      throw new AgonError('PAYMENTS.TOO_LARGE', `A webhook has at most ${WEBHOOK_BYTES_MAX} bytes.`);
    }
    const { eventId, notice } = await provider.readWebhook(body, signature);
    if (!notice) return { received: true, outcome: 'ignored' };
    const id = derivedId('stripe', eventId);
    const meta = newMeta({ id: 'stripe', role: 'system' }, { id, clock: this.ports.clock });
    const command = new TakeNotice({ accountId: notice.accountId, notice }, meta);
    const handled: Handled = await this.commands.execute(command);
    const outcome = handled.repeated ? 'repeated' : handled.events.length > 0 ? 'taken' : 'known';
    return { received: true, outcome };
  }

  /** Where people come back to. It proves nothing: the balance follows the webhook. */
  @Get('return')
  @Header('Content-Type', 'text/plain; charset=utf-8')
  back(@Query('done') done?: string) {
    return done
      ? 'Thank you. The payment shows as soon as Stripe confirms it. You can close this page.'
      : 'Nothing was paid. You can close this page.';
  }
}
