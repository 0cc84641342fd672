import { Inject } from '@nestjs/common';
import { Args, Context, Mutation, Query, Resolver } from '@nestjs/graphql';
import { AgonError } from '../../services/kernel/index.js';
import { metaOf, type RequestContext } from '../auth/actor.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { DeadLetter, Projection } from './types.js';

const VIEW = { type: () => String } as const;

/** The read side itself: how far it is, what it put aside, and building it anew. */
@Resolver()
export class ProjectionQueries {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  @Query(() => [Projection])
  projections() {
    return this.ports.projections.list();
  }

  @Query(() => [DeadLetter], { description: 'Events that views could not take in, with the reason.' })
  deadLetters(@Args('view', { ...VIEW, nullable: true }) view?: string) {
    return this.ports.projections.deadLetters(view ?? undefined);
  }

  @Mutation(() => Projection, { description: 'Builds a view anew beside the one that serves, then swaps them.' })
  async rebuildProjection(@Args('view', VIEW) view: string, @Context() context: RequestContext) {
    const { actor } = metaOf(this.ports, context, 'RebuildProjection');
    if (actor.role !== 'operator' && actor.role !== 'admin') {
      throw new AgonError('AUTH.FORBIDDEN', 'Only an operator may rebuild a view.');
    }
    await this.ports.projections.status(view);
    this.ports.projections.rebuild(view).catch((error: unknown) => {
      // Stopping interrupts it; the next start goes on with it.
      if (!(error instanceof AgonError) && (error as Error).name !== 'AbortError') this.ports.onInternalError(error);
    });
    return this.ports.projections.status(view);
  }
}
