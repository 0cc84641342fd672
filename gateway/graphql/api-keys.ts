import { Inject } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Args, Context, Field, Mutation, ObjectType, Query, Resolver } from '@nestjs/graphql';
import { IssueApiKey, type KeyScope, keyScopes, RevokeApiKey } from '../../services/accounts/index.js';
import type { Handled } from '../../services/kernel/index.js';
import { assertMayRead, metaOf, type RequestContext } from '../auth/actor.js';
import { newApiKey } from '../auth/api-key.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { Receipt } from './types.js';

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
class IssuedApiKey {
  @Field(() => String)
  readonly keyId!: string;
  @Field(() => String, { description: 'Shown this once, and kept nowhere.' })
  readonly key!: string;
}

/** Keys with which agents act for their owners. */
@Resolver()
export class ApiKeys {
  constructor(
    @Inject(PORTS) private readonly ports: GatewayPorts,
    @Inject(CommandBus) private readonly commands: CommandBus,
  ) {}

  @Query(() => [ApiKey], { description: 'Those in force, and the last that were revoked.' })
  async apiKeys(
    @Args('accountId', { type: () => String }) accountId: string,
    @Context() context: RequestContext,
  ): Promise<ApiKey[]> {
    assertMayRead(context, accountId);
    const { keys } = await this.ports.identities.ports.directory.account(accountId);
    return Object.values(keys).map((key) => ({ ...key, agents: key.agents ?? null }));
  }

  @Mutation(() => IssuedApiKey, { description: 'Makes an API key. Its text is shown this once.' })
  async issueApiKey(
    @Args('accountId', { type: () => String }) accountId: string,
    @Args('scopes', { type: () => [String], description: `Of ${keyScopes.join(', ')}.` }) scopes: KeyScope[],
    @Args('name', { type: () => String, defaultValue: '' }) name: string,
    @Args('agents', { type: () => [String], nullable: true }) agents: string[] | undefined,
    @Context() context: RequestContext,
  ): Promise<IssuedApiKey> {
    const meta = metaOf(this.ports, context, 'IssueApiKey');
    const { keyId, text, secretHash } = newApiKey(accountId);
    const only = agents ? { agents } : {};
    await this.commands.execute(new IssueApiKey({ accountId, keyId, name, scopes, ...only, secretHash }, meta));
    return { keyId, key: text };
  }

  @Mutation(() => Receipt, { description: 'Ends a key at once. Streams that it has open are cut.' })
  async revokeApiKey(
    @Args('accountId', { type: () => String }) accountId: string,
    @Args('keyId', { type: () => String }) keyId: string,
    @Args('reason', { type: () => String, defaultValue: 'revoked' }) reason: string,
    @Context() context: RequestContext,
  ): Promise<Receipt> {
    const meta = metaOf(this.ports, context, 'RevokeApiKey');
    const handled: Handled = await this.commands.execute(new RevokeApiKey({ accountId, keyId, reason }, meta));
    const { position, repeated } = handled;
    return { id: keyId, events: handled.events.map((event) => event.type), position, repeated };
  }
}
