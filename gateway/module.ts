import type { DynamicModule } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { GraphQLModule } from '@nestjs/graphql';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import type { FastifyRequest } from 'fastify';
import { contextOf } from './auth/actor.js';
import { Accounts } from './graphql/accounts.js';
import { analyticsResolvers } from './graphql/analytics.js';
import { BoardQueries } from './graphql/boards.js';
import { admit, type Documents } from './graphql/documents.js';
import { formatErrors } from './graphql/errors.js';
import { fieldResolvers } from './graphql/fields.js';
import { queryLimits, rulesFor } from './graphql/limits.js';
import { Money } from './graphql/money.js';
import { Mutations } from './graphql/mutations.js';
import { Payments } from './graphql/payments.js';
import { projectionResolvers } from './graphql/projections.js';
import { Queries } from './graphql/queries.js';
import type { ResponseCache } from './graphql/response-cache.js';
import { Subscriptions } from './graphql/subscriptions.js';
import { type GatewayPorts, PORTS } from './ports.js';
import { HealthController } from './rest/health.js';
import { ProblemFilter } from './rest/problem-filter.js';

class Ports {}
class Gateway {}

/** The gateway over the given ports. */
export function gatewayModule(options: {
  ports: GatewayPorts;
  /** Whether the schema may be asked for, and GraphiQL is served. */
  introspection: boolean;
  /** The only queries that are answered, by their hashes; all are without it. */
  documents?: Documents | undefined;
  remembered: ResponseCache;
}): DynamicModule {
  const { ports, introspection, documents, remembered } = options;
  return {
    module: Gateway,
    imports: [
      { module: Ports, global: true, providers: [{ provide: PORTS, useValue: ports }], exports: [PORTS] },
      GraphQLModule.forRoot<MercuriusDriverConfig>({
        driver: MercuriusDriver,
        autoSchemaFile: true,
        // What is asked for again and again is compiled; what is asked for once is not worth it.
        jit: 16,
        graphiql: introspection,
        graphql: {
          parseOptions: { maxTokens: queryLimits.tokensMax },
          validateOptions: { maxErrors: queryLimits.errorsMax },
        },
        validationRules: rulesFor(introspection),
        additionalRouteOptions: remembered.around(
          (request) => admit(ports, request, documents),
          documents === undefined,
        ),
        context: (request: FastifyRequest) => contextOf(ports, request),
        errorFormatter: (execution) => formatErrors(execution, ports),
      }),
    ],
    controllers: [HealthController],
    providers: [
      Queries,
      ...fieldResolvers,
      BoardQueries,
      Money,
      Mutations,
      Payments,
      ...projectionResolvers,
      Subscriptions,
      ...analyticsResolvers,
      Accounts,
      { provide: APP_FILTER, useClass: ProblemFilter },
    ],
  };
}
