import { hash } from 'node:crypto';
import { contexts } from '../../services/index.js';
import {
  type Command,
  createHandle,
  derivedId,
  type EventStore,
  type Handled,
  invariant,
  newMeta,
  runnerIdOf,
  SYSTEM,
} from '../../services/kernel/index.js';
import { payIn, payOut } from './chapter-money.js';
import { between, type Random } from './workload.js';

const START_MS = Date.parse('2026-01-01T00:00:00.000Z');
const DAY_MS = 86_400_000;
const LEASE_MS = 3_600_000;
const policies = contexts.flatMap((context) => context.policies ?? []);
export type Data = Readonly<Record<string, unknown>>;
/** Carries out a command by its name, and all that policies make of it. */
type Send = (type: string, data: Data) => Promise<unknown>;

export interface Chapter {
  /** Makes its accounts, agents and matches other ones than those of other chapters. */
  readonly name: string;
  readonly random: Random;
  /** A dozen shows every way in which one can end. */
  readonly matches: number;
  /** Comes before every command; whoever throws here ends the chapter in the middle. */
  onward?(): Promise<void>;
}

/**
 * A part of an arena's life in which everything happens that views react to, by the real deciders and policies: people,
 * agents, runners, matches of every end, payments and withdrawals. What ends somewhere in between stays there.
 */
export async function playChapter(store: EventStore, chapter: Chapter): Promise<void> {
  const send = await senderTo(store, chapter);
  const id = (name: string | number) => derivedId('chapter', chapter.name, name);
  const account = (name: string) => `${name}-${chapter.name}`;
  const scene: Scene = { ...chapter, send, id, account };
  await meetPeople(scene);
  await playMatches(scene);
  await payIn(scene);
  await payOut(scene);
  await leave(scene);
}

export interface Scene extends Chapter {
  readonly send: Send;
  id(name: string | number): string;
  account(name: string): string;
}

async function senderTo(store: EventStore, { name, onward }: Chapter): Promise<Send> {
  const handle = createHandle({ store });
  let seen = await store.lastPosition();
  // Chapters follow each other: over a few of them ratings see the end of a season.
  let [sent, nowMs] = [0, START_MS + seen * 3_600_000];
  const handled = (command: Command): Promise<Handled> => {
    const context = contexts.find(({ commands }) => commands.some(({ spec }) => spec.type === command.type));
    invariant(context, `${command.type} belongs to a context.`);
    return handle(context, command);
  };
  const commandOf = (type: string, data: Data): Command => {
    const found = contexts.flatMap(({ commands }) => commands).find(({ spec }) => spec.type === type);
    invariant(found, `There is a command ${type}.`);
    const meta = newMeta(SYSTEM, {
      id: derivedId('chapter', name, 'command', sent++),
      clock: () => new Date(nowMs).toISOString(),
    });
    return new found(data as never, meta);
  };
  return async (type, data) => {
    await onward?.();
    nowMs += type === 'ExpireHolds' ? DAY_MS : 60_000;
    await handled(commandOf(type, data));
    for (
      let page = await store.readAll({ after: seen });
      page.length > 0;
      page = await store.readAll({ after: seen })
    ) {
      for (const event of page) {
        for (const policy of policies.filter(({ types }) => types.includes(event.type))) {
          for (const command of policy.react(event)) await handled(command);
        }
        seen = event.position;
      }
    }
  };
}

const hexOf = (text: string, digits: number) => hash('sha256', text).slice(0, digits);
const code = (text: string) => ({ codeDigest: hexOf(text, 64), codeBytes: 10, runtime: 'javascript' });

async function meetPeople({ name, send, id, account }: Scene): Promise<void> {
  const [ada, bob, cyd, org] = ['ada', 'bob', 'cyd', 'org'].map(account) as [string, string, string, string];
  const person = { accountId: ada, personId: id('person') };
  await send('EnrolPerson', person);
  await send('ChangePassword', person);
  await send('EnableTotp', person);
  await send('DisableTotp', person);
  for (const issuer of ['https://id.example', 'https://old.example']) await send('LinkIdentity', { ...person, issuer });
  await send('UnlinkIdentity', { ...person, issuer: 'https://old.example' });
  await send('RefuseSignIn', { accountId: ada, factor: 'password' });
  await send('EndSessions', { accountId: ada, reason: 'lost phone' });
  const session = { accountId: ada, sessionId: hexOf(`session ${name}`, 32) };
  const [tokenHash, nextHash] = [hexOf('first', 64), hexOf('next', 64)];
  await send('OpenSession', {
    ...session,
    epoch: 1,
    methods: ['pwd'],
    tokenHash,
    expiresAt: '2036-01-01T00:00:00.000Z',
  });
  await send('RefreshSession', { ...session, tokenHash, nextHash });
  await send('EndSession', session);
  for (const accountId of [bob, cyd]) await send('RegisterOwner', { accountId, displayName: accountId });
  await send('RegisterOrganisation', { accountId: org, displayName: 'An organisation', founderId: ada });
  for (const memberId of [bob, cyd]) await send('SetMember', { accountId: org, memberId, role: 'member' });
  await send('JoinOrganisation', { accountId: ada, organisationId: org });
  await send('RemoveMember', { accountId: org, memberId: bob });
  await send('LeaveOrganisation', { accountId: ada, organisationId: org });
  const keyId = hexOf(`key ${name}`, 12);
  await send('IssueApiKey', { accountId: bob, keyId, name: 'script', scopes: ['read'], secretHash: tokenHash });
  await send('RevokeApiKey', { accountId: bob, keyId, reason: 'rotated' });
  for (const ownerId of [ada, bob, cyd]) {
    const agent = { ownerId, name: 'bot', games: ['a', 'b'] };
    await send('SubmitAgent', { ...agent, ...code(ownerId) });
    // The last one is poor, so that some stakes are refused.
    const amountCents = ownerId === cyd ? '250' : '100000';
    await send('GrantCredits', { accountId: ownerId, amountCents, currency: 'PLAY', reason: 'welcome' });
  }
  await send('PublishVersion', { ownerId: ada, name: 'bot', ...code('second') });
  await send('RegisterExternalAgent', { ownerId: bob, name: 'outside', games: ['a'] });
}

/** How far a match gets. All ends come before any comes again, so that a short chapter has each of them. */
const ends = [
  'reversed',
  'settled',
  'bounty',
  'voided',
  'ready',
  'claimed',
  'extended',
  'released',
  'requeued',
  'reversed',
  'settled',
  'settled',
] as const;

async function playMatches(scene: Scene): Promise<void> {
  const { name, send, account, matches } = scene;
  const [publicKey, stolenKey] = [hexOf(`runner ${name}`, 64), hexOf(`stolen ${name}`, 64)];
  const runnerId = runnerIdOf(publicKey);
  await send('RegisterRunner', { runnerId, publicKey });
  await send('RegisterRunner', { runnerId: runnerIdOf(stolenKey), publicKey: stolenKey });
  await send('RevokeRunner', { runnerId: runnerIdOf(stolenKey), reason: 'stolen' });
  for (const owner of ['ada', 'bob', 'cyd']) {
    const credits = { accountId: account(owner), amountCents: '1000', currency: 'COMPUTE', reason: 'welcome' };
    await send('GrantCredits', credits);
  }
  for (let i = 0; i < matches; i++) await playMatch(scene, i, runnerId);
}

async function playMatch({ send, id, account, random }: Scene, i: number, runnerId: string): Promise<void> {
  const end = ends[i % ends.length] as (typeof ends)[number];
  const matchId = id(i);
  // Matches that must come to their end are between those who can pay for it.
  const owners = i < ends.length ? ['ada', 'bob'] : ['ada', 'bob', 'cyd'];
  const first = between(random, 0, owners.length - 1);
  const seats = [0, 1].map((seat) => {
    const accountId = account(owners[(first + seat) % owners.length] as string);
    const { codeDigest, runtime } = code(accountId);
    return { agentId: `${accountId}.bot`, accountId, version: 1, codeDigest, runtime };
  });
  const bounty = { bountyId: `bounty-${i}`, sponsorId: account('bob'), amountCents: '101' };
  const extras = end === 'bounty' ? { bounty, computeCents: '7', disputeWindowMs: 1_000, priority: 2 } : {};
  const terms = { matchId, game: random() < 0.5 ? 'a' : 'b', stakeCents: '100', currency: 'PLAY', seed: `${i}` };
  await send('ProposeMatch', { ...terms, seats, rakeBps: 700, ...extras });
  if (end === 'ready') return;
  const attempt = { matchId, runnerId, attempt: 1 };
  // A stake that was refused has ended it already.
  const claimed = await send('ClaimMatch', { matchId, runnerId, leaseMs: LEASE_MS }).catch(() => false);
  if (end === 'claimed' || claimed === false) return;
  if (end === 'voided') return void (await send('VoidMatch', { matchId, detail: 'power cut' }));
  if (end === 'released') return void (await send('ReleaseMatch', { ...attempt, reason: 'stops' }));
  if (end === 'requeued') return void (await send('FailAttempt', { ...attempt, reason: 'cell died' }));
  await send('ExtendLease', { ...attempt, leaseMs: LEASE_MS });
  if (end === 'extended') return;
  const winner = between(random, 0, 2);
  const scores = winner === 2 ? [0.5, 0.5] : [1 - winner, winner];
  const outcome = { winner: winner === 2 ? null : winner, scores, reason: 'line', detail: '', seatAtFault: null };
  const turns = [1, 2, 3].map((turn) => ({ turn, seat: (turn + 1) % 2, action: turn, fuel: turn }));
  const usage = [0, 1].map((seat) => ({ fuel: 9_000 + seat, peakMemoryBytes: 70_000, cpuMs: 1, wallMs: 2 }));
  const execution = { driver: 'wasm', gameVersion: 1, limits: { turnFuel: 1 }, usage };
  await send('ReportMatch', { ...attempt, turns, outcome, execution });
  if (end === 'reversed') await send('ReverseMatch', { matchId, reason: 'the rules were broken' });
}

async function leave({ send, id, account }: Scene): Promise<void> {
  await send('ErasePerson', { accountId: account('ada'), personId: id('person') });
}
