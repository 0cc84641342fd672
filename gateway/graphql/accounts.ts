import { Inject } from '@nestjs/common';
import { Args, Context, Field, ObjectType, Query, Resolver } from '@nestjs/graphql';
import { auditOf, organisationsNaming } from '../../projections/accounts/query.js';
import { canonical, type MemberRole, memberRoles } from '../../services/kernel/index.js';
import { assertMayRead, type RequestContext } from '../auth/actor.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { connectionOf, PAGE, type PageArgs, toConnection } from './relay.js';

const text = { type: () => String } as const;
const INVITATIONS_MAX = 100;

@ObjectType({ description: 'Whom the token in hand speaks for.' })
class Me {
  @Field(() => String) readonly accountId!: string;
  @Field(() => String) readonly role!: string;
  @Field(() => [Membership]) readonly memberOf!: readonly Membership[];
}

@ObjectType()
class Membership {
  @Field(() => String) readonly accountId!: string;
  @Field(() => String) readonly memberId!: string;
  @Field(() => String, { description: `One of ${memberRoles.join(', ')}.` }) readonly role!: string;
}

@ObjectType({ description: 'Something that happened to an account.' })
class AuditEntry {
  @Field(() => String) readonly position!: string;
  @Field(() => String) readonly at!: string;
  @Field(() => String) readonly type!: string;
  @Field(() => String) readonly actorId!: string;
  @Field(() => String) readonly actorRole!: string;
  @Field(() => String, { description: 'As JSON.' }) readonly detail!: string;
}

@ObjectType()
class AuditConnection extends connectionOf(AuditEntry, 'AuditEntry') {}

/** Who acts for whom, and what became of accounts. */
@Resolver()
export class Accounts {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  @Query(() => Me, { nullable: true, description: 'Null for whoever has no token.' })
  me(@Context() { actor }: RequestContext): Me | undefined {
    if (!actor) return undefined;
    const { id: accountId, role, memberOf = {} } = actor;
    return { accountId, role, memberOf: membershipsOf(accountId, memberOf) };
  }

  @Query(() => [Membership], { description: 'Who acts for an organisation.' })
  async members(@Args('accountId', text) accountId: string, @Context() context: RequestContext): Promise<Membership[]> {
    assertMayRead(context, accountId);
    const { members } = await this.ports.identities.ports.directory.account(accountId);
    return Object.entries(members).map(([memberId, role]) => ({ accountId, memberId, role }));
  }

  @Query(() => [Membership], {
    description: `Organisations that name an account as a member, which has not joined them: the first ${INVITATIONS_MAX}.`,
  })
  async invitations(
    @Args('accountId', text) accountId: string,
    @Context() context: RequestContext,
  ): Promise<Membership[]> {
    assertMayRead(context, accountId);
    const { joined } = await this.ports.identities.ports.directory.account(accountId);
    const naming = await organisationsNaming(this.ports.database, accountId, INVITATIONS_MAX + joined.length);
    return naming.filter(({ accountId: organisation }) => !joined.includes(organisation)).slice(0, INVITATIONS_MAX);
  }

  @Query(() => AuditConnection, { description: 'What happened to an account: newest first.' })
  async auditTrail(
    @Args('accountId', text) accountId: string,
    @Context() context: RequestContext,
    @Args(PAGE) page: PageArgs,
  ): Promise<AuditConnection> {
    assertMayRead(context, accountId);
    const found = await auditOf(this.ports.database, accountId, page);
    return toConnection(found, (row) => ({ ...row, position: `${row.position}`, detail: canonical(row.detail) }));
  }
}

const membershipsOf = (memberId: string, memberOf: Readonly<Record<string, MemberRole>>): Membership[] =>
  Object.entries(memberOf).map(([accountId, role]) => ({ accountId, memberId, role }));
