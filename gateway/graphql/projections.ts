import { Inject } from '@nestjs/common';
import { Args, Context, Float, Parent, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { secondsBehind } from '../../projections/engine/projections.js';
import { listDeadLetters } from '../../projections/engine/query.js';
import { assertStaffReads, type RequestContext, seesWhatIsOf } from '../auth/actor.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { PAGE, type PageArgs, pageIn, toConnection } from './relay.js';
import { projectionOf } from './rows.js';
import { Build, BusLetter, DeadLetter, DeadLetterConnection, Projection } from './types.js';

const VIEW = { type: () => String } as const;
const MAYBE = { ...VIEW, nullable: true } as const;

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
    return this.ports.letters.list(group == null ? {} : { group });
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
