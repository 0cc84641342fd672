import { type ExecutionResult, GraphQLError } from 'graphql';
import type { GatewayPorts } from '../ports.js';
import { problemOf, statusOf } from '../problem.js';

/** Errors leave as GraphQL errors with a stable code. What is wrong with the query itself is told in GraphQL's words. */
export function formatErrors(
  execution: { errors?: readonly GraphQLError[]; data?: ExecutionResult['data'] },
  ports: Pick<GatewayPorts, 'onInternalError' | 'onProblem'>,
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
  for (const { extensions } of errors) ports.onProblem?.('graphql', String(extensions.code));
  return { statusCode: 200, response: { data: execution.data ?? null, errors } };
}

/** What GraphQL finds wrong before it runs anything: each fault with its place in the query. */
function faultsOfQuery(error: GraphQLError): readonly GraphQLError[] | undefined {
  const { originalError } = error;
  if (!originalError) return [error];
  const { code = '', errors } = originalError as { code?: string; errors?: readonly GraphQLError[] };
  return code.startsWith('MER_ERR_GQL_') ? (errors ?? [error]) : undefined;
}
