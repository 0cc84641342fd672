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
import { AgonError, type Clock, type Command, derivedId, type Handled, newMeta } from '../../services/kernel/index.js';
import { type PaymentProvider, TakeNotice } from '../../services/payments/index.js';
import { type GatewayPorts, PORTS, providerIn } from '../ports.js';

/** Stripe's own are a few kilobytes. */
export const WEBHOOK_BYTES_MAX = 256 * 1024;

interface WebhookPorts {
  readonly provider: PaymentProvider;
  readonly clock: Clock;
  execute(command: Command): Promise<Handled>;
}

/** Takes what a webhook tells, once for each event id. When it returns, what was told is in the log. */
export async function takeWebhook({ provider, clock, execute }: WebhookPorts, body: Buffer, signature: string) {
  if (body.length > WEBHOOK_BYTES_MAX) {
    throw new AgonError('PAYMENTS.TOO_LARGE', `A webhook has at most ${WEBHOOK_BYTES_MAX} bytes.`);
  }
  const { eventId, notice } = await provider.readWebhook(body, signature);
  if (!notice) return { received: true, outcome: 'ignored' };
  const meta = newMeta({ id: 'stripe', role: 'system' }, { id: derivedId('stripe', eventId), clock });
  const { repeated, events } = await execute(new TakeNotice({ accountId: notice.accountId, notice }, meta));
  return { received: true, outcome: repeated ? 'repeated' : events.length > 0 ? 'taken' : 'known' };
}

/** Where Stripe tells what was paid. */
@Controller('v1/stripe')
export class StripeWebhookController {
  constructor(
    @Inject(PORTS) private readonly ports: GatewayPorts,
    @Inject(CommandBus) private readonly commands: CommandBus,
  ) {}

  @Post('webhook')
  @HttpCode(200)
  webhook(@Req() request: RawBodyRequest<FastifyRequest>, @Headers('stripe-signature') signature = '') {
    const execute = (command: Command): Promise<Handled> => this.commands.execute(command);
    const ports = { provider: providerIn(this.ports), clock: this.ports.clock, execute };
    return takeWebhook(ports, request.rawBody ?? Buffer.alloc(0), signature);
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
