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
import type { Command, Handled } from '../../services/kernel/index.js';
import { takeWebhook } from '../../services/payments/index.js';
import { type GatewayPorts, PORTS, providerIn } from '../ports.js';

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
