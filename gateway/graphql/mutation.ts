import 'reflect-metadata';
import { Inject, type Type } from '@nestjs/common';
import { Args, type ArgsOptions, Context, Mutation, Resolver } from '@nestjs/graphql';
import type { RequestContext } from '../auth/actor.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { Receipt } from './types.js';

type UseCase<Data, Made> = (ports: GatewayPorts, context: RequestContext, data: Data) => Promise<Made>;

type ScalarOf<Field> = Field extends boolean ? BooleanConstructor : StringConstructor;
type TypeOf<Field> = Field extends readonly (infer Each)[] ? [ScalarOf<Each>] : ScalarOf<Field>;

/** A field that may be left out is an argument that may be null. */
type Argument<Field> = {
  readonly type: () => TypeOf<NonNullable<Field>>;
  readonly description?: string;
} & (undefined extends Field ? { readonly nullable: true } : { readonly defaultValue?: Field });

type Arguments<Data> = { readonly [Name in keyof Data]-?: Argument<Data[Name]> };

interface Declared {
  readonly description: string;
  readonly useCase: UseCase<object, unknown>;
  readonly args: Readonly<Record<string, ArgsOptions>>;
  readonly returns: () => unknown;
}

/**
 * A use case as it is asked for over GraphQL. Its data are the arguments, by the same names; what it makes is a receipt
 * unless another type is named.
 *
 * @example voidMatch: mutation('Calls off a match.', voidMatch, { matchId: TEXT, detail: text('Why.') })
 */
export const mutation = <Data extends object>(
  description: string,
  useCase: UseCase<Data, unknown>,
  args: Arguments<NoInfer<Data>>,
  returns: () => unknown = () => Receipt,
): Declared => ({ description, useCase: useCase as UseCase<object, unknown>, args: args as never, returns });

/** A method as the compiler makes it of one that is written out with its decorators. */
export function addMethod(
  { prototype }: { readonly prototype: object },
  name: string,
  value: (...given: never[]) => Promise<unknown>,
  decorators: { readonly method: readonly MethodDecorator[]; readonly parameters: readonly ParameterDecorator[] },
): void {
  const method = { value, writable: true, configurable: true };
  Object.defineProperty(prototype, name, method);
  // Each argument says its type by its decorator.
  const types = decorators.parameters.map(() => Object);
  Reflect.defineMetadata('design:paramtypes', types, prototype, name);
  for (const [i, decorate] of decorators.parameters.entries()) decorate(prototype, name, i);
  for (const decorate of decorators.method) decorate(prototype, name, method);
}

/** A resolver with these mutations. */
export function resolverOf(mutations: Readonly<Record<string, Declared>>): Type {
  @Resolver()
  class Mutations {
    constructor(@Inject(PORTS) readonly ports: GatewayPorts) {}
  }
  for (const [name, { description, useCase, args, returns }] of Object.entries(mutations)) {
    const names = Object.keys(args);
    const carryOut = async function (this: Mutations, context: RequestContext, ...values: unknown[]) {
      const given = names.map((each, i) => [each, values[i]] as const).filter(([, one]) => one != null);
      return useCase(this.ports, context, Object.fromEntries(given));
    };
    addMethod(Mutations, name, carryOut, {
      method: [Mutation(returns as () => Type, { description })],
      parameters: [Context(), ...names.map((each) => Args(each, args[each] ?? {}))],
    });
  }
  return Mutations;
}
