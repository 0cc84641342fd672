import type { Type } from '@nestjs/common';
import { Float } from '@nestjs/graphql';
import { secondsBehind } from '../../projections/engine/projections.js';
import { listDeadLetters } from '../../projections/engine/query.js';
import { assertStaffReads, type RequestContext, seesWhatIsOf } from '../auth/actor.js';
import { about, fieldsOf, maybe, queriesOf, query } from './declare.js';
import { connectionOf, PAGE, pageIn, toConnection } from './relay.js';
import { projectionOf } from './rows.js';
import { Build, BusLetter, DeadLetter, Projection } from './types.js';

/** The read side itself: how far it is, what it put aside, and building it anew. */
export const projectionResolvers = [
  queriesOf({
    projections: query({
      type: [Projection],
      resolve: async ({ ports }) => (await ports.projections.list()).map(projectionOf),
    }),
    deadLetters: query({
      type: about([DeadLetter], 'Events that views could not take in, with the reason.'),
      args: { view: maybe(String) },
      resolve: ({ ports, args, context }) => {
        assertStaffReads(context);
        return ports.projections.deadLetters(args.view ?? undefined);
      },
    }),
    deadLettersConnection: query({
      type: about(connectionOf(DeadLetter), 'The same, page by page.'),
      args: { ...PAGE, view: maybe(String) },
      resolve: async ({ ports, args, context }) => {
        assertStaffReads(context);
        const { view } = args;
        if (view != null) await ports.projections.status(view);
        const only = view == null ? {} : { view };
        const found = await listDeadLetters(ports.database, { ...pageIn(args), ...only });
        return toConnection(found, (row) => ({
          ...row,
          group: `projection.${row.view}`,
          position: Number(row.position),
        }));
      },
    }),
    busLetters: query({
      type: about([BusLetter], 'Events that policies gave up on, with the reason.'),
      args: { group: maybe(String) },
      resolve: ({ ports, args: { group }, context }) => {
        assertStaffReads(context);
        return ports.letters.list(group == null ? {} : { group });
      },
    }),
  }),

  fieldsOf(Projection, (field) => ({
    lagSeconds: field({
      type: about(Float, 'How old the first event is that is not taken in.'),
      resolve: ({ ports: { log, clock }, parent }) => secondsBehind(log, parent.position, clock()),
    }),
  })),

  fieldsOf<{ trouble?: string | null }>(Build as Type, (field) => ({
    trouble: field({
      type: maybe(String, 'What keeps it from going on, for those who run the arena. It is tried again.'),
      resolve: ({ parent, context }) => troubleFor(context, parent.trouble),
    }),
  })),
];

/** The words of whatever failed may quote an event, as those of a dead letter do. */
export const troubleFor = (context: RequestContext, trouble: string | null | undefined) =>
  seesWhatIsOf(context, '') ? trouble : null;
