import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Inject } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { type GatewayPorts, PORTS } from '../ports.js';
import { type Problem, problemOf } from '../problem.js';

/** Every error of a REST route leaves as RFC 9457 problem details; those of GraphQL go on to its own formatter. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  catch(error: unknown, host: ArgumentsHost): unknown {
    if (host.getType<string>() !== 'http') return error;
    const problem = error instanceof HttpException ? fromNest(error) : problemOf(error);
    this.ports.onProblem?.('http', problem.code);
    if (problem.status >= 500) this.ports.onInternalError(error);
    const reply = host.switchToHttp().getResponse<FastifyReply>();
    const { retryAfterMs } = problem;
    if (typeof retryAfterMs === 'number') reply.header('retry-after', Math.ceil(retryAfterMs / 1000));
    return reply.status(problem.status).type('application/problem+json').send(problem);
  }
}

/** What Nest refuses before a handler of ours runs: an unknown route, a body that is not JSON. */
function fromNest(error: HttpException): Problem {
  const status = error.getStatus();
  const code = status === 404 ? 'HTTP.NOT_FOUND' : `HTTP.${status}`;
  return { type: 'about:blank', title: code, status, code, detail: error.message };
}
