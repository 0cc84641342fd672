import type { FastifyReply } from 'fastify';
import { asDatabaseError } from '../projections/sinks/database.js';
import { AgonError, asAgonError } from '../services/kernel/index.js';

/** The one place where codes become HTTP. The longest prefix that fits decides. */
const STATUS_BY_CODE: Readonly<Record<string, number>> = {
  'AUTH.UNAUTHENTICATED': 401,
  'AUTH.FORBIDDEN': 403,
  'AUTH.BAD_ORIGIN': 403,
  'AUTH.SCOPE': 403,
  'AUTH.CLOSED': 403,
  'AUTH.WEAK_PASSWORD': 422,
  'AUTH.TOTP_ON': 409,
  'AUTH.LAST_WAY_IN': 409,
  'AUTH.BAD_FLOW': 400,
  'AUTH.BAD_REDIRECT': 400,
  'AUTH.NO_PROVIDER': 503,
  'AUTH.PROVIDER_AWAY': 503,
  'AUTH.': 401,
  'COMMAND.INVALID': 400,
  'COMMAND.KEY_REUSED': 422,
  'COMMAND.CONTENDED': 409,
  'ACCOUNTS.TAKEN': 409,
  'ACCOUNTS.UNKNOWN': 404,
  'AGENTS.EXISTS': 409,
  'AGENTS.UNKNOWN': 404,
  'AGENTS.BROKEN_CODE': 422,
  'AGENTS.BUNDLE_': 422,
  'AGENTS.BUNDLE_TOO_LARGE': 413,
  'AGENTS.TOO_LARGE': 413,
  'AGENTS.UNKNOWN_RUNTIME': 400,
  'SANDBOX.DRIVER_UNAVAILABLE': 503,
  'ARENA.UNKNOWN_MATCH': 404,
  'ARENA.UNKNOWN_GAME': 404,
  'WEBHOOKS.UNKNOWN': 404,
  'WEBHOOKS.BAD_URL': 422,
  'WEBHOOKS.': 409,
  'RUNNERS.UNKNOWN': 404,
  'RUNNERS.': 409,
  'PAYMENTS.NOT_CONFIGURED': 503,
  'PAYMENTS.NO_ANSWER': 503,
  'PAYMENTS.PLAN_LIMIT': 402,
  'PAYMENTS.UNKNOWN': 404,
  'PAYMENTS.UNKNOWN_PLAN': 400,
  'PAYMENTS.UNKNOWN_PACK': 400,
  'PAYMENTS.BAD_': 400,
  'PAYMENTS.TOO_LARGE': 413,
  'PAYMENTS.PROVIDER_REFUSED': 502,
  'PAYMENTS.': 409,
  'LIMITS.EXCEEDED': 429,
  'CONTENT.UNCHECKED': 503,
  'CONTENT.': 422,
  'LIMITS.BUSY': 503,
  'LIVE.FULL': 503,
  'HTTP.TOO_SLOW': 408,
  'HTTP.TOO_LONG': 503,
  'HTTP.BROKEN_OFF': 400,
  'QUERY.': 400,
  'PROJECTION.UNKNOWN': 404,
  'EVENT.NOT_JSON': 400,
  'MONEY.': 400,
  'SANDBOX.UNKNOWN_GAME': 400,
  'SANDBOX.WRONG_SEATS': 400,
  'STORE.TOO_LARGE': 413,
  'STORE.FULL': 507,
  'DATABASE.UNAVAILABLE': 503,
  'ANALYTICS.REFUSED': 500,
  'ANALYTICS.': 503,
  'ACCOUNTS.': 409,
  'AGENTS.': 409,
  'ARENA.': 409,
  'WALLET.': 409,
};

export function statusOf(code: string): number {
  const prefixes = Object.keys(STATUS_BY_CODE).filter((prefix) => code.startsWith(prefix));
  const longest = prefixes.sort((a, b) => b.length - a.length)[0];
  return longest === undefined ? 500 : (STATUS_BY_CODE[longest] ?? 500);
}

/** RFC 9457 problem details. What was not meant for the caller is not shown to the caller. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly [extension: string]: unknown;
}

export function problemOf(thrown: unknown): Problem {
  const error = asDatabaseError(thrown) ?? asAgonError(thrown);
  const status = statusOf(error.code);
  const internal = status === 500;
  const code = internal && !(thrown instanceof AgonError) ? 'INTERNAL' : error.code;
  return {
    ...(internal ? {} : error.details),
    type: 'about:blank',
    title: code,
    status,
    code,
    detail: internal ? 'Something went wrong inside Agon. The operator finds it in the log.' : error.message,
  };
}

/** What the server itself refuses, such as a method that an address does not take. */
export const plainProblem = (status: number, detail: string, code = `HTTP.${status}`): Problem => {
  return { type: 'about:blank', title: code, status, code, detail };
};

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { retryAfterMs } = problem;
  if (typeof retryAfterMs === 'number') reply.header('retry-after', Math.ceil(retryAfterMs / 1000));
  return reply
    .status(problem.status)
    .type('application/problem+json')
    .removeHeader('content-disposition')
    .send(problem);
}
