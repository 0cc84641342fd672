import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Inject } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { type GatewayPorts, PORTS } from '../ports.js';
import { type Problem, plainProblem, problemOf, sendProblem } from '../problem.js';

/** Every error of a REST route leaves as RFC 9457 problem details; those of GraphQL go on to its own formatter. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  catch(error: unknown, host: ArgumentsHost): unknown {
    if (host.getType<string>() !== 'http') return error;
    const problem = error instanceof HttpException ? fromNest(error) : problemOf(error);
    this.ports.onProblem?.('http', problem.code);
    if (problem.status >= 500) this.ports.onInternalError(error);
    return sendProblem(host.switchToHttp().getResponse<FastifyReply>(), problem);
  }
}

/** What Nest refuses before a handler of ours runs: an unknown route, a body that is not JSON. */
function fromNest(error: HttpException): Problem {
  const status = error.getStatus();
  return status === 404 ? plainProblem(status, error.message, 'HTTP.NOT_FOUND') : plainProblem(status, error.message);
}
