import { Inject } from '@nestjs/common';
import { Args, Context, Field, ObjectType, Query, Resolver } from '@nestjs/graphql';
import { assertMayRead, type RequestContext } from '../auth/actor.js';
import { type GatewayPorts, PORTS } from '../ports.js';

@ObjectType({ description: 'A key as far as it is known here: its secret is not.' })
class ApiKey {
  @Field(() => String)
  readonly keyId!: string;
  @Field(() => String)
  readonly name!: string;
  @Field(() => [String])
  readonly scopes!: readonly string[];
  @Field(() => [String], { nullable: true, description: 'Only for these agents; for all of the account when null.' })
  readonly agents!: readonly string[] | null;
  @Field(() => Boolean)
  readonly revoked!: boolean;
}

@ObjectType()
export class IssuedApiKey {
  @Field(() => String)
  readonly keyId!: string;
  @Field(() => String, { description: 'Shown this once, and kept nowhere.' })
  readonly key!: string;
}

/** Keys with which agents act for their owners. */
@Resolver()
export class ApiKeys {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  @Query(() => [ApiKey], { description: 'Those in force, and the last that were revoked.' })
  async apiKeys(
    @Args('accountId', { type: () => String }) accountId: string,
    @Context() context: RequestContext,
  ): Promise<ApiKey[]> {
    assertMayRead(context, accountId);
    const { keys } = await this.ports.identities.ports.directory.account(accountId);
    return Object.values(keys).map((key) => ({ ...key, agents: key.agents ?? null }));
  }
}
