import { upcast } from '../../index.js';
import {
  AgonError,
  asAgonError,
  type Checkpoints,
  type DeadLetter,
  type EventStore,
  type Policy,
} from '../../kernel/index.js';
import type { DeadLetterFilter, DeadLetters, DeadLetterWants } from '../../runtime/engines.js';
import { groupOfPolicy } from '../../runtime/policies.js';

interface Options extends DeadLetterWants {
  readonly store: Pick<EventStore, 'readAll'>;
  readonly checkpoints: Checkpoints;
}

/** What the policies of this process gave up on, and a way to hand it to them again. */
export class PolicyDeadLetters implements DeadLetters {
  constructor(private readonly options: Options) {}

  async list({ group, eventId }: DeadLetterFilter = {}): Promise<readonly DeadLetter[]> {
    const letters = await this.options.checkpoints.deadLetters(group);
    return letters
      .filter((letter) => eventId === undefined || letter.eventId === eventId)
      .sort((a, b) => a.position - b.position);
  }

  /**
   * Once each, in the order of the log. What was done of it before is not done again, since its commands have the same
   * ids. One that fails again stays, with the new reason.
   */
  async replay(filter: DeadLetterFilter = {}): Promise<{ done: readonly DeadLetter[]; left: readonly DeadLetter[] }> {
    const done: DeadLetter[] = [];
    const left: DeadLetter[] = [];
    for (const letter of await this.list(filter)) {
      const policy = this.options.policies.find((each) => groupOfPolicy(each) === letter.group);
      if (!policy) continue;
      const again = await this.redo(policy, letter);
      (again ? left : done).push(again ?? letter);
    }
    return { done, left };
  }

  private async redo(policy: Policy, letter: DeadLetter): Promise<DeadLetter | undefined> {
    const { store, checkpoints, execute } = this.options;
    try {
      const [event] = await store.readAll({ from: letter.position, limit: 1 });
      // A letter that nobody can be handed is kept: its event is where the log has been put back from a backup, or nowhere.
      if (event?.id !== letter.eventId) {
        throw new AgonError(
          'BUS.EVENT_MISSING',
          `The log has no event ${letter.eventId} at position ${letter.position}.`,
        );
      }
      for (const command of policy.react(upcast(event))) await execute(command);
      await checkpoints.unbury(letter.group, letter.eventId);
      return undefined;
    } catch (error) {
      const { code, message } = asAgonError(error);
      const again = { ...letter, code, message, attempts: letter.attempts + 1 };
      await checkpoints.bury(again);
      return again;
    }
  }
}
