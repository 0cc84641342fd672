import type { FastifyReply } from 'fastify';
import { asDatabaseError } from '../projections/sinks/database.js';
import { AgonError, asAgonError } from '../services/kernel/index.js';

/** The one place where codes become HTTP. The longest prefix that fits decides. */
const CODES_BY_STATUS: Readonly<Record<number, readonly string[]>> = {
  400: [
    'AGENTS.UNKNOWN_RUNTIME',
    'AUTH.BAD_FLOW',
    'AUTH.BAD_REDIRECT',
    'COMMAND.INVALID',
    'EVENT.NOT_JSON',
    'HTTP.BROKEN_OFF',
    'MONEY.',
    'PAYMENTS.BAD_',
    'PAYMENTS.UNKNOWN_PACK',
    'PAYMENTS.UNKNOWN_PLAN',
    'QUERY.',
    'SANDBOX.UNKNOWN_GAME',
    'SANDBOX.WRONG_SEATS',
  ],
  401: ['AUTH.'],
  402: ['PAYMENTS.PLAN_LIMIT'],
  403: ['AUTH.BAD_ORIGIN', 'AUTH.CLOSED', 'AUTH.FORBIDDEN', 'AUTH.SCOPE'],
  404: [
    'ACCOUNTS.UNKNOWN',
    'AGENTS.UNKNOWN',
    'ARENA.UNKNOWN_GAME',
    'ARENA.UNKNOWN_MATCH',
    'PAYMENTS.UNKNOWN',
    'PROJECTION.UNKNOWN',
    'RUNNERS.UNKNOWN',
    'WEBHOOKS.UNKNOWN',
  ],
  408: ['HTTP.TOO_SLOW'],
  409: [
    'ACCOUNTS.',
    'AGENTS.',
    'ARENA.',
    'AUTH.LAST_WAY_IN',
    'AUTH.TOTP_ON',
    'COMMAND.CONTENDED',
    'PAYMENTS.',
    'RUNNERS.',
    'WALLET.',
    'WEBHOOKS.',
  ],
  413: ['AGENTS.BUNDLE_TOO_LARGE', 'AGENTS.TOO_LARGE', 'PAYMENTS.TOO_LARGE', 'STORE.TOO_LARGE'],
  422: [
    'AGENTS.BROKEN_CODE',
    'AGENTS.BUNDLE_',
    'AUTH.WEAK_PASSWORD',
    'COMMAND.KEY_REUSED',
    'CONTENT.',
    'WEBHOOKS.BAD_URL',
  ],
  429: ['LIMITS.EXCEEDED'],
  500: ['ANALYTICS.REFUSED'],
  502: ['PAYMENTS.PROVIDER_REFUSED'],
  503: [
    'ANALYTICS.',
    'AUTH.NO_PROVIDER',
    'AUTH.PROVIDER_AWAY',
    'CONTENT.UNCHECKED',
    'DATABASE.UNAVAILABLE',
    'HTTP.TOO_LONG',
    'LIMITS.BUSY',
    'LIVE.FULL',
    'PAYMENTS.NOT_CONFIGURED',
    'PAYMENTS.NO_ANSWER',
    'SANDBOX.DRIVER_UNAVAILABLE',
  ],
  507: ['STORE.FULL'],
};
const STATUS_BY_CODE = new Map(
  Object.entries(CODES_BY_STATUS).flatMap(([status, codes]) => codes.map((code) => [code, Number(status)] as const)),
);

export function statusOf(code: string): number {
  const prefixes = [...STATUS_BY_CODE.keys()].filter((prefix) => code.startsWith(prefix));
  const [longest = ''] = prefixes.sort((a, b) => b.length - a.length);
  return STATUS_BY_CODE.get(longest) ?? 500;
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
