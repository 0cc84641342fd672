import { Inject } from '@nestjs/common';
import { Args, Context, Float, Mutation, Parent, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { secondsBehind } from '../../projections/engine/projections.js';
import { listDeadLetters } from '../../projections/engine/query.js';
import { AgonError } from '../../services/kernel/index.js';
import { assertStaffReads, metaOf, type RequestContext, seesWhatIsOf } from '../auth/actor.js';
import { type GatewayPorts, type LetterFilter, type Letters, PORTS } from '../ports.js';
import { PAGE, type PageArgs, pageIn, toConnection } from './relay.js';
import { projectionOf } from './shown.js';
import { Build, BusLetter, DeadLetter, DeadLetterConnection, Projection, Replayed } from './types.js';

const VIEW = { type: () => String } as const;
const MAYBE = { ...VIEW, nullable: true } as const;

const filterOf = (group?: string | null, eventId?: string | null): LetterFilter => ({
  ...(group == null ? {} : { group }),
  ...(eventId == null ? {} : { eventId }),
});

/** The read side itself: how far it is, what it put aside, and building it anew. */
@Resolver(() => Projection)
export class ProjectionQueries {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  @Query(() => [Projection])
  async projections() {
    return (await this.ports.projections.list()).map(projectionOf);
  }

  @ResolveField(() => Float, { description: 'How old the first event is that is not taken in.' })
  lagSeconds(@Parent() { position }: Projection) {
    return secondsBehind(this.ports.log, position, this.ports.clock());
  }

  @Query(() => [DeadLetter], { description: 'Events that views could not take in, with the reason.' })
  deadLetters(@Context() context: RequestContext, @Args('view', { ...VIEW, nullable: true }) view?: string) {
    assertStaffReads(context);
    return this.ports.projections.deadLetters(view ?? undefined);
  }

  @Query(() => DeadLetterConnection, { description: 'The same, page by page.' })
  async deadLettersConnection(
    @Context() context: RequestContext,
    @Args(PAGE) page: PageArgs,
    @Args('view', { ...VIEW, nullable: true }) view?: string,
  ) {
    assertStaffReads(context);
    if (view != null) await this.ports.projections.status(view);
    const only = view == null ? {} : { view };
    const found = await listDeadLetters(this.ports.database, { ...pageIn(page), ...only });
    return toConnection(found, (row) => ({
      ...row,
      group: `projection.${row.view}`,
      position: Number(row.position),
    }));
  }

  @Query(() => [BusLetter], { description: 'Events that policies gave up on, with the reason.' })
  busLetters(@Context() context: RequestContext, @Args('group', MAYBE) group?: string | null) {
    assertStaffReads(context);
    return this.letters().list(filterOf(group));
  }

  @Mutation(() => Replayed, { description: 'Hands dead letters to their policies again.' })
  replayBusLetters(
    @Context() context: RequestContext,
    @Args('group', MAYBE) group?: string | null,
    @Args('eventId', MAYBE) eventId?: string | null,
  ) {
    this.assertOperates(context, 'ReplayLetters', 'replay dead letters');
    return this.letters().replay(filterOf(group, eventId));
  }

  private letters(): Letters {
    const { letters } = this.ports;
    if (letters) return letters;
    throw new AgonError('BUS.ELSEWHERE', 'Kafka keeps the dead letters of this arena. Try "agon bus replay --kafka".');
  }

  private assertOperates(context: RequestContext, type: string, what: string): void {
    const { actor } = metaOf(this.ports, context, type);
    if (actor.role === 'operator' || actor.role === 'admin') return;
    throw new AgonError('AUTH.FORBIDDEN', `Only an operator may ${what}.`);
  }

  @Mutation(() => Projection, { description: 'Builds a view anew beside the one that serves, then swaps them.' })
  async rebuildProjection(@Args('view', VIEW) view: string, @Context() context: RequestContext) {
    this.assertOperates(context, 'RebuildProjection', 'rebuild a view');
    await this.ports.projections.ask(view);
    return projectionOf(await this.ports.projections.status(view));
  }
}

@Resolver(() => Build)
export class BuildFields {
  @ResolveField(() => String, {
    nullable: true,
    description: 'What keeps it from going on, for those who run the arena. It is tried again.',
  })
  trouble(@Parent() { trouble }: Build, @Context() context: RequestContext) {
    // The words of whatever failed may quote an event, as those of a dead letter do.
    return seesWhatIsOf(context, '') ? trouble : null;
  }
}
