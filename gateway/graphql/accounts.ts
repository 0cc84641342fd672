import { Inject } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Args, Context, Field, Mutation, ObjectType, Query, Resolver } from '@nestjs/graphql';
import { auditOf, organisationsNaming } from '../../projections/accounts/query.js';
import {
  assertJoins,
  EndSessions,
  JoinOrganisation,
  LeaveOrganisation,
  RegisterOrganisation,
  RemoveMember,
  SetMember,
} from '../../services/accounts/index.js';
import {
  AgonError,
  type Command,
  type CommandMeta,
  canonical,
  derivedId,
  type Handled,
  isStaff,
  type MemberRole,
  memberRoles,
} from '../../services/kernel/index.js';
import { actorIn, assertMayRead, metaOf, type RequestContext } from '../auth/actor.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { connectionOf, PAGE, type PageArgs, toConnection } from './relay.js';
import { Receipt } from './types.js';

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
  constructor(
    @Inject(PORTS) private readonly ports: GatewayPorts,
    @Inject(CommandBus) private readonly commands: CommandBus,
  ) {}

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

  @Mutation(() => Receipt, { description: 'Registers an account that several people act for. You own it.' })
  async registerOrganisation(
    @Args('accountId', text) accountId: string,
    @Args('displayName', text) displayName: string,
    @Args('founderId', { ...text, description: 'Its first owner: yourself.' }) founderId: string,
    @Context() context: RequestContext,
  ) {
    const meta = metaOf(this.ports, context, 'RegisterOrganisation');
    this.ports.identities.signIn.assertOpen(accountId, meta.actor);
    const itself = meta.actor.id === founderId;
    if (itself) assertJoins(await this.ports.identities.ports.directory.account(founderId));
    const founded = await this.send(accountId, new RegisterOrganisation({ accountId, displayName, founderId }, meta));
    // Whoever founds for somebody else has named an owner, who has yet to join.
    const joined = { accountId: founderId, organisationId: accountId };
    if (itself) await this.commands.execute(new JoinOrganisation(joined, following(meta)));
    return founded;
  }

  @Mutation(() => Receipt, { description: 'Agrees to act for an organisation, from when it names this account.' })
  joinOrganisation(
    @Args('accountId', { ...text, description: 'The member: yourself.' }) accountId: string,
    @Args('organisationId', text) organisationId: string,
    @Context() context: RequestContext,
  ) {
    const meta = metaOf(this.ports, context, 'JoinOrganisation');
    return this.send(organisationId, new JoinOrganisation({ accountId, organisationId }, meta));
  }

  @Mutation(() => Receipt, { description: 'Lets somebody who joins it act for an organisation, or changes as what.' })
  async setMember(
    @Args('accountId', text) accountId: string,
    @Args('memberId', text) memberId: string,
    @Args('role', { ...text, description: `One of ${memberRoles.join(', ')}.` }) role: MemberRole,
    @Context() context: RequestContext,
  ) {
    const command = new SetMember({ accountId, memberId, role }, metaOf(this.ports, context, 'SetMember'));
    // A name that nobody has could be taken later, by anybody.
    if (!(await this.ports.identities.ports.directory.account(memberId)).registered) {
      throw new AgonError('ACCOUNTS.UNKNOWN', `There is no account ${memberId}.`);
    }
    return this.send(accountId, command);
  }

  @Mutation(() => Receipt, { description: 'Ends a membership at once; of oneself, for good.' })
  async removeMember(
    @Args('accountId', text) accountId: string,
    @Args('memberId', text) memberId: string,
    @Context() context: RequestContext,
  ) {
    const meta = metaOf(this.ports, context, 'RemoveMember');
    const removing = new RemoveMember({ accountId, memberId }, meta);
    if (meta.actor.id !== memberId) return this.send(accountId, removing);
    const leaving = new LeaveOrganisation({ accountId: memberId, organisationId: accountId }, following(meta));
    const { members } = await this.ports.identities.ports.directory.account(accountId);
    if (!members[memberId]) return this.send(accountId, leaving);
    const removed = await this.send(accountId, removing);
    await this.commands.execute(leaving);
    return removed;
  }

  @Mutation(() => Receipt, { description: 'Signs an account out everywhere, at once.' })
  endSessions(
    @Args('accountId', text) accountId: string,
    @Args('reason', { ...text, defaultValue: 'asked for' }) reason: string,
    @Context() context: RequestContext,
  ) {
    return this.send(accountId, new EndSessions({ accountId, reason }, metaOf(this.ports, context, 'EndSessions')));
  }

  @Mutation(() => String, { description: 'Signs access tokens with a new key from now on; its kid. For staff.' })
  rotateSigningKey(@Context() context: RequestContext): Promise<string> {
    if (!isStaff(actorIn(context, 'RotateSigningKey'))) {
      throw new AgonError('AUTH.FORBIDDEN', 'Only staff may change the signing key.');
    }
    return this.ports.identities.ports.tokens.rotate();
  }

  private async send(id: string, command: Command): Promise<Receipt> {
    const { events, position, repeated }: Handled = await this.commands.execute(command);
    await this.ports.visible(position);
    return { id, events: events.map((event) => event.type), position, repeated };
  }
}

/** The meta of what is done along with a command, once however often that is repeated. */
const following = (meta: CommandMeta): CommandMeta => ({ ...meta, id: derivedId(meta.id, 'along') });

const membershipsOf = (memberId: string, memberOf: Readonly<Record<string, MemberRole>>): Membership[] =>
  Object.entries(memberOf).map(([accountId, role]) => ({ accountId, memberId, role }));
