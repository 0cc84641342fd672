import 'reflect-metadata';
import { type Abstract, Inject, type Type } from '@nestjs/common';
import {
  Args,
  Context,
  Extensions,
  Field,
  Float,
  Mutation,
  ObjectType,
  type ObjectTypeOptions,
  Parent,
  Query,
  ResolveField,
  Resolver,
  type ReturnTypeFunc,
} from '@nestjs/graphql';
import type { GraphQLScalarType } from 'graphql';
import type { RequestContext } from '../auth/actor.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { type Loaders, loadersOf } from './loaders.js';

/** A type as fields and arguments name it, and the same with what else there is to say of it. */
type NamedType =
  | StringConstructor
  | BooleanConstructor
  | GraphQLScalarType
  | Type
  | Abstract<unknown>
  | readonly [NamedType];
interface Spec<T extends NamedType = NamedType> {
  readonly type: T;
  readonly description?: string | undefined;
  readonly nullable?: true | 'items';
  readonly defaultValue?: unknown;
}
type Declaration = NamedType | Spec;
export type Shape = Readonly<Record<string, Declaration>>;

type NamedValue<T> = T extends StringConstructor
  ? string
  : T extends BooleanConstructor
    ? boolean
    : T extends readonly [infer Each]
      ? NamedValue<Each>[]
      : T extends GraphQLScalarType<infer Value>
        ? Value
        : T extends Abstract<infer Value>
          ? Value
          : never;
type Value<D> = D extends { readonly nullable: true; readonly type: infer T }
  ? NamedValue<T> | null | undefined
  : D extends { readonly type: infer T }
    ? NamedValue<T>
    : NamedValue<D>;
export type ValuesOf<S extends Shape> = { [Name in keyof S]: Value<S[Name]> };

/** @example { winner: maybe(Int, 'The winning seat; null for a draw.') } */
export const maybe = <const T extends NamedType>(type: T, description?: string) =>
  ({ type, description, nullable: true }) as const;
export const about = <const T extends NamedType>(type: T, description: string) => ({ type, description }) as const;
export const usually = <const T extends NamedType>(type: T, defaultValue: NamedValue<T>, description?: string) =>
  ({ type, description, defaultValue }) as const;

/** As Nest's decorators take it. */
function specOf(declared: Declaration): { readonly type: ReturnTypeFunc; readonly options: object } {
  const isSpec = typeof declared === 'object' && 'type' in declared;
  const { type, ...options } = isSpec ? declared : { type: declared };
  return { type: () => type as ReturnType<ReturnTypeFunc>, options };
}

/** Makes a class a type of the schema. */
export function declareType<T>(
  Of: Type<T>,
  name: string,
  description: string,
  shape: Shape,
  more: ObjectTypeOptions = {},
) {
  Object.defineProperty(Of, 'name', { value: name });
  for (const [field, declared] of Object.entries(shape)) {
    const { type, options } = specOf(declared);
    Field(type, options)(Of.prototype, field);
  }
  ObjectType(name, description === '' ? more : { ...more, description })(Of);
  return Of;
}

/** @example objectType('Purse', 'One currency of a wallet.', { currency: String, heldCents: String }) */
export const objectType = <const S extends Shape>(name: string, description: string, shape: S): Type<ValuesOf<S>> =>
  declareType(class {} as Type<ValuesOf<S>>, name, description, shape);

/** What a resolver gets to know. */
interface Question<Data, Of> {
  readonly ports: GatewayPorts;
  readonly context: RequestContext;
  /** What is fetched for many of this request at once. */
  readonly load: Loaders;
  readonly args: Data;
  readonly parent: Of;
}

interface Definition<T extends Declaration, S extends Shape, Of> {
  readonly type: T;
  readonly args?: S;
  /** What is dear to compute counts as so many values. */
  readonly cost?: number;
  resolve(asked: Question<ValuesOf<S>, Of>): unknown;
}
type AnyDefinition = Definition<Declaration, Shape, never>;
type Resolve<Of> = <const T extends Declaration, const S extends Shape = Record<never, never>>(
  resolved: Definition<T, S, Of>,
) => AnyDefinition;

/** A field of the schema with its arguments, and how it is answered. */
export const query: Resolve<undefined> = (resolved) => resolved as unknown as AnyDefinition;

export const queriesOf = (queries: Readonly<Record<string, AnyDefinition>>): Type => resolverOf(Query, queries);

/** Fields of a type that are more than a column of its row. */
export const fieldsOf = <Of>(
  Owner: Type<Of>,
  fields: (field: Resolve<Of>) => Readonly<Record<string, AnyDefinition>>,
): Type => resolverOf(ResolveField, fields(query as never), () => Owner);

const Receipt = objectType('Receipt', 'What a command did.', {
  id: String,
  events: [String],
  position: about(Float, 'Its place in the log.'),
  repeated: about(Boolean, 'True when the same request had been carried out before.'),
});

type UseCase<Data> = (ports: GatewayPorts, context: RequestContext, data: Data) => Promise<unknown>;
type TypeOf<Field> = Field extends boolean
  ? BooleanConstructor
  : Field extends readonly unknown[]
    ? readonly [StringConstructor]
    : StringConstructor;
/** A field that may be left out is an argument that may be null. */
type Argument<Field> = undefined extends Field
  ? Spec<TypeOf<NonNullable<Field>>> & { readonly nullable: true }
  : TypeOf<Field> | (Spec<TypeOf<Field>> & { readonly nullable?: never });
type Arguments<Data> = { readonly [Name in keyof Data]-?: Argument<Data[Name]> };

/**
 * A use case as it is asked for over GraphQL. Its data are the arguments, by the same names; what it makes is a receipt
 * unless another type is named.
 *
 * @example voidMatch: mutation('Calls off a match.', voidMatch, { matchId: String, detail: about(String, 'Why.') })
 */
export const mutation = <Data extends object>(
  type: Spec | string,
  useCase: UseCase<Data>,
  args: Arguments<NoInfer<Data>>,
): AnyDefinition => ({
  type: typeof type === 'string' ? about(Receipt, type) : type,
  args: args as Shape,
  resolve: ({ ports, context, args: given }: Question<object, never>) => {
    const said = Object.entries(given).filter(([, value]) => value != null);
    return useCase(ports, context, Object.fromEntries(said) as Data);
  },
});

export const mutationsOf = (mutations: Readonly<Record<string, AnyDefinition>>): Type =>
  resolverOf(Mutation, mutations);

type Decorate = typeof Query | typeof Mutation | typeof ResolveField;

/** A class as the compiler makes it of methods that are written out with their decorators. */
function resolverOf(decorate: Decorate, fields: Readonly<Record<string, AnyDefinition>>, owner?: () => Type): Type {
  class Resolvers {
    constructor(@Inject(PORTS) readonly ports: GatewayPorts) {}
  }
  for (const [field, { type: declared, args = {}, cost, resolve }] of Object.entries(fields)) {
    const names = Object.keys(args);
    const value = async function (this: Resolvers, context: RequestContext, parent: never, ...values: unknown[]) {
      const given = Object.fromEntries(names.map((name, i) => [name, values[i]]));
      const { ports } = this;
      return resolve({ ports, context, load: loadersOf(ports, context), args: given as never, parent });
    };
    const method = { value, writable: true, configurable: true };
    Object.defineProperty(Resolvers.prototype, field, method);
    const parameters = [Context(), Parent(), ...Object.entries(args).map(([name, each]) => argument(name, each))];
    // Each argument says its type by its decorator.
    const types = parameters.map(() => Object);
    Reflect.defineMetadata('design:paramtypes', types, Resolvers.prototype, field);
    for (const [i, parameter] of parameters.entries()) parameter(Resolvers.prototype, field, i);
    const { type, options } = specOf(declared);
    decorate(type, options)(Resolvers.prototype, field, method);
    if (cost !== undefined) Extensions({ cost })(Resolvers.prototype, field, method);
  }
  if (owner) Resolver(owner)(Resolvers);
  else Resolver()(Resolvers);
  return Resolvers;
}

function argument(name: string, declared: Declaration): ParameterDecorator {
  const { type, options } = specOf(declared);
  return Args(name, { type, ...options });
}
