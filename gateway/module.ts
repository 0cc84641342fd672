import type { DynamicModule } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { CqrsModule } from '@nestjs/cqrs';
import { GraphQLModule } from '@nestjs/graphql';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import type { FastifyRequest } from 'fastify';
import { type ExecutionResult, GraphQLError, NoSchemaIntrospectionCustomRule } from 'graphql';
import type { Context, Handle } from '../services/kernel/index.js';
import { contextModule, HANDLE } from '../services/kernel/nest.js';
import { contextOf } from './auth/actor.js';
import { AnalyticsQueries } from './graphql/analytics.js';
import { ApiKeys } from './graphql/api-keys.js';
import { BoardQueries } from './graphql/boards.js';
import { queryLimits, queryLimitsRule } from './graphql/limits.js';
import { Money } from './graphql/money.js';
import { Mutations } from './graphql/mutations.js';
import { PaymentsResolver } from './graphql/payments.js';
import { ProjectionQueries } from './graphql/projections.js';
import { AgentFields, MatchFields, Queries } from './graphql/queries.js';
import { type GatewayPorts, PORTS } from './ports.js';
import { problemOf, statusOf } from './problem.js';
import { HealthController } from './rest/health.js';
import { LiveController } from './rest/live.js';
import { ProblemFilter } from './rest/problem-filter.js';
import { StatementController } from './rest/statement.js';
import { StripeWebhookController } from './rest/stripe-webhook.js';

class Kernel {}
class Gateway {}

/** The doors of the arena over the given contexts and ports. */
export function gatewayModule(options: {
  contexts: readonly Context[];
  handle: Handle;
  ports: GatewayPorts;
  /** Whether the schema may be asked for, and GraphiQL is served. */
  introspection: boolean;
}): DynamicModule {
  const { contexts, handle, ports, introspection } = options;
  return {
    module: Gateway,
    imports: [
      { module: Kernel, global: true, providers: kernel(handle, ports), exports: [HANDLE, PORTS] },
      CqrsModule.forRoot(),
      ...contexts.map(contextModule),
      GraphQLModule.forRoot<MercuriusDriverConfig>({
        driver: MercuriusDriver,
        autoSchemaFile: true,
        graphiql: introspection,
        graphql: {
          parseOptions: { maxTokens: queryLimits.tokensMax },
          validateOptions: { maxErrors: queryLimits.errorsMax },
        },
        validationRules: introspection ? [queryLimitsRule] : [queryLimitsRule, NoSchemaIntrospectionCustomRule],
        context: (request: FastifyRequest) => contextOf(ports, request),
        errorFormatter: (execution) => formatErrors(execution, ports),
      }),
    ],
    controllers: [HealthController, LiveController, StatementController, StripeWebhookController],
    providers: [
      ...[
        Queries,
        BoardQueries,
        Money,
        MatchFields,
        AgentFields,
        Mutations,
        PaymentsResolver,
        ProjectionQueries,
        AnalyticsQueries,
        ApiKeys,
      ],
      { provide: APP_FILTER, useClass: ProblemFilter },
    ],
  };
}

const kernel = (handle: Handle, ports: GatewayPorts) => [
  { provide: HANDLE, useValue: handle },
  { provide: PORTS, useValue: ports },
];

/** Errors leave as GraphQL errors with a stable code. What is wrong with the query itself is told in GraphQL's words. */
function formatErrors(
  execution: { errors?: readonly GraphQLError[]; data?: ExecutionResult['data'] },
  ports: GatewayPorts,
) {
  const errors = (execution.errors ?? []).flatMap((error) => {
    const faults = faultsOfQuery(error);
    if (faults) {
      return faults.map(({ message, extensions, nodes = null, source = null, positions = null }) => {
        const code = String(extensions?.code ?? 'QUERY.INVALID');
        return new GraphQLError(message, { nodes, source, positions, extensions: { code, status: statusOf(code) } });
      });
    }
    const { detail, code, status } = problemOf(error.originalError);
    if (status >= 500) ports.onInternalError(error.originalError);
    const { nodes = null, path = null } = error;
    return [new GraphQLError(detail, { nodes, path, extensions: { code, status } })];
  });
  return { statusCode: 200, response: { data: execution.data ?? null, errors } };
}

/** What GraphQL finds wrong before it runs anything: each fault with its place in the query. */
function faultsOfQuery(error: GraphQLError): readonly GraphQLError[] | undefined {
  const { originalError } = error;
  if (!originalError) return [error];
  const { code = '', errors } = originalError as { code?: string; errors?: readonly GraphQLError[] };
  return code.startsWith('MER_ERR_GQL_') ? (errors ?? [error]) : undefined;
}
