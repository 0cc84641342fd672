import {
  type FieldNode,
  GraphQLError,
  type GraphQLField,
  getNamedType,
  getNullableType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValidationContext,
  type ValidationRule,
} from 'graphql';
import { PAGE_MAX } from '../../projections/engine/page.js';

/** What one query may ask for. Everything is judged before anything is carried out. */
export const queryLimits = {
  tokensMax: 4_000,
  /** A mistake in each of ten thousand fields needs no ten thousand errors. */
  errorsMax: 20,
  /** GraphiQL asks for the schema with 15 levels; nothing else needs more than half of them. */
  depthMax: 15,
  aliasesMax: 30,
  fieldsMax: 500,
  costMax: 20_000,
} as const;

/** Arguments that say how many rows are asked for: of a page, or by their names. */
const SIZES: readonly string[] = ['first', 'last', 'ids'];
/** Rows to reckon with where a query does not say how many it wants. */
const ROWS_UNSAID = 20;

interface Measure {
  readonly depth: number;
  readonly aliases: number;
  readonly fields: number;
  /** About how many values the answer holds; what is dear to compute counts as many. */
  readonly cost: number;
}

const NOTHING: Measure = { depth: 0, aliases: 0, fields: 0, cost: 0 };

/**
 * Refuses an operation that is too deep, too wide or too dear. A fragment is measured once however often it is spread,
 * so that measuring takes time in proportion to the query's text, not to what the text unfolds to.
 */
export const queryLimitsRule: ValidationRule = (context) => ({
  OperationDefinition(operation) {
    const { depth, aliases, fields, cost } = measureOf(context, operation);
    const over = (code: string, what: string, found: number, max: number) => {
      if (found <= max) return;
      const text = `This ${operation.operation} ${what} ${Math.min(found, 1e12)}; at most ${max} is allowed. Ask for less at a time.`;
      context.reportError(new GraphQLError(text, { nodes: operation, extensions: { code } }));
    };
    over('QUERY.TOO_DEEP', 'is nested to a depth of', depth, queryLimits.depthMax);
    over('QUERY.TOO_MANY_ALIASES', 'has this many aliases:', aliases, queryLimits.aliasesMax);
    over('QUERY.TOO_WIDE', 'has this many fields:', fields, queryLimits.fieldsMax);
    over('QUERY.TOO_COSTLY', 'would cost about', cost, queryLimits.costMax);
  },
});

/** What a query is judged by besides GraphQL's own rules, over HTTP and over WebSocket alike. */
export const rulesFor = (introspection: boolean): ValidationRule[] =>
  introspection ? [queryLimitsRule] : [queryLimitsRule, NoSchemaIntrospectionCustomRule];

function measureOf(context: ValidationContext, operation: OperationDefinitionNode): Measure {
  const fragments = new Map<string, Measure>();
  const root = context.getSchema().getRootType(operation.operation);
  const fieldsOf = (type: string | undefined) => {
    const named = type === undefined ? undefined : context.getSchema().getType(type);
    return isObjectType(named) || isInterfaceType(named) ? named.getFields() : {};
  };

  function ofSelections(set: SelectionSetNode | undefined, type: string | undefined, paged: boolean): Measure {
    let sum = NOTHING;
    for (const selection of set?.selections ?? []) {
      let part: Measure;
      if (selection.kind === Kind.FIELD) part = ofField(selection, fieldsOf(type)[selection.name.value], paged);
      else if (selection.kind === Kind.INLINE_FRAGMENT) {
        part = ofSelections(selection.selectionSet, selection.typeCondition?.name.value ?? type, paged);
      } else part = ofFragment(selection.name.value, paged);
      sum = {
        depth: Math.max(sum.depth, part.depth),
        aliases: sum.aliases + part.aliases,
        fields: sum.fields + part.fields,
        cost: sum.cost + part.cost,
      };
    }
    return sum;
  }

  function ofFragment(name: string, paged: boolean): Measure {
    const key = `${name} ${paged}`;
    const known = fragments.get(key);
    if (known) return known;
    // One that spreads itself costs nothing the second time; GraphQL's own rules refuse it.
    fragments.set(key, NOTHING);
    const fragment = context.getFragment(name);
    const measure = fragment ? ofSelections(fragment.selectionSet, fragment.typeCondition.name.value, paged) : NOTHING;
    fragments.set(key, measure);
    return measure;
  }

  function ofField(node: FieldNode, field: GraphQLField<unknown, unknown> | undefined, paged: boolean): Measure {
    const pages = field?.args.some(({ name }) => SIZES.includes(name)) ?? false;
    const list = field !== undefined && isListType(getNullableType(field.type));
    const inner = ofSelections(node.selectionSet, field && getNamedType(field.type).name, pages && !list);
    // The list of a page has as many rows as the page was asked for, and they are counted there.
    const rows = pages ? rowsAsked(node) : list && !paged ? ROWS_UNSAID : 1;
    const own = Number(field?.extensions.cost ?? 1);
    return {
      depth: inner.depth + 1,
      aliases: inner.aliases + (node.alias ? 1 : 0),
      fields: inner.fields + 1,
      cost: own + rows * inner.cost,
    };
  }

  return ofSelections(operation.selectionSet, root?.name, false);
}

/** What is in a variable is known too late, so it counts as the most that a page may have. Pages of more are refused. */
function rowsAsked({ arguments: given = [] }: FieldNode): number {
  const sizes = given
    .filter(({ name, value }) => SIZES.includes(name.value) && value.kind !== Kind.NULL)
    .map(({ value }) => {
      if (value.kind === Kind.LIST) return value.values.length;
      return value.kind === Kind.INT ? Number(value.value) : PAGE_MAX;
    });
  return sizes.length === 0 ? ROWS_UNSAID : Math.min(PAGE_MAX, Math.max(1, ...sizes));
}
