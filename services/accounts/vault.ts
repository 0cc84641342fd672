import { z } from 'zod';

const identity = z.object({ issuer: z.string().max(500), subject: z.string().max(500) });

/** What is personal about whoever signs in. None of it is ever a part of an event. */
export const personSchema = z.object({
  accountId: z.string(),
  name: z.string().optional(),
  email: z.string().optional(),
  /** As argon2id writes it, with its parameters. */
  passwordHash: z.string().optional(),
  /** In base32. Until a first code was given, it opens and closes nothing. */
  totp: z.object({ secret: z.string(), confirmed: z.boolean(), lastStep: z.number() }).optional(),
  /** As whom others vouch for this person. */
  identities: z.array(identity).default([]),
});

export type Person = z.output<typeof personSchema>;
export type Identity = z.output<typeof identity>;

/**
 * Where people are kept, apart from the log: it can be changed and emptied, and the log cannot. Refuses with
 * VAULT.UNREADABLE what was damaged.
 */
export interface Vault {
  read(personId: string): Promise<Person | undefined>;
  write(personId: string, person: Person): Promise<void>;
  /** Whom this identity belongs to. */
  find(identity: Identity): Promise<string | undefined>;
  /** Makes everything about a person unreadable, in copies that were made before as well. */
  erase(personId: string): Promise<void>;
}
