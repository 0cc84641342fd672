import { Readable } from 'node:stream';
import { Controller, Get, Inject, Param, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { statementCsv } from '../../projections/balances/statement.js';
import { AgonError, actsFor } from '../../services/kernel/index.js';
import { contextOf, metaOf } from '../auth/actor.js';
import { type GatewayPorts, PORTS } from '../ports.js';

/** What happened to a player's money, as a file for a spreadsheet. The owner's own, or staff's to see. */
@Controller('v1/accounts')
export class StatementController {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  @Get(':accountId/statement.csv')
  async statement(
    @Param('accountId') accountId: string,
    @Query('currency') currency: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ) {
    const { actor } = metaOf(this.ports, contextOf(this.ports, request), 'read');
    if (!actsFor(actor, accountId)) {
      throw new AgonError('AUTH.FORBIDDEN', `${actor.role} ${actor.id} may not see the statement of ${accountId}.`);
    }
    const rows = Readable.from(statementCsv(this.ports.database, accountId, currency));
    await reply
      .type('text/csv; charset=utf-8')
      .header('content-disposition', 'attachment; filename="statement.csv"')
      .send(rows);
  }
}
