import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import db, { type EventStoreDBClient } from '@eventstore/db-client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  accounts,
  EnrolPerson,
  IssueApiKey,
  JoinOrganisation,
  type KeyScope,
  RemoveMember,
  RevokeApiKey,
  SetMember,
} from '../../services/accounts/index.js';
import { connect as connectTo } from '../../services/adapters/store/eventstoredb-client.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { until } from '../../services/adapters/store/subscription.contract.js';
import { type Command, createHandle, newMeta, randomIds, SYSTEM, systemClock } from '../../services/kernel/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { parseConfig } from '../../services/runtime/settings.js';
import { newApiKey } from '../auth/api-key.js';
import { type OpenEndpoint, openEventStoreEndpoint } from './endpoint.js';

const { jsonEvent } = db;

describe("the arena's API keys at the door of the log", () => {
  let folder: string;
  let log: MemoryEventStore;
  let door: OpenEndpoint;
  let handle: (command: Command) => Promise<unknown>;
  const clients: EventStoreDBClient[] = [];

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'agon-log-keys-'));
    log = new MemoryEventStore();
    const write = createHandle({ store: log });
    handle = (command) => write(accounts, command as never);
    const tokens = { operatorToken: 'operator-token', readerToken: 'reader-token' };
    const onInternalError = (error: unknown) => console.error(error);
    const parts = { store: log, clock: systemClock, ids: randomIds, config: parseConfig(), ...tokens };
    door = await openEventStoreEndpoint({ ...parts, paths: folderLayout(folder), onInternalError }, 0);
  });

  afterEach(async () => {
    for (const client of clients.splice(0)) await client.dispose();
    await door.close();
    await log.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const meta = () => newMeta(SYSTEM);
  const enrol = (accountId: string) => handle(new EnrolPerson({ accountId, personId: randomIds() }, meta()));
  const joinStaff = (accountId: string) => handle(new JoinOrganisation({ accountId, organisationId: 'staff' }, meta()));
  const appoint = (memberId: string) =>
    handle(new SetMember({ accountId: 'staff', memberId, role: 'auditor' }, meta()));
  const issue = async (accountId: string, scopes: KeyScope[]) => {
    const { keyId, text, secretHash } = newApiKey(accountId);
    await handle(new IssueApiKey({ accountId, keyId, name: '', scopes, secretHash }, meta()));
    return { keyId, text };
  };
  const revoke = (accountId: string, keyId: string) =>
    handle(new RevokeApiKey({ accountId, keyId, reason: 'lost' }, meta()));

  /** The official client, with this key as its password. */
  const connect = (key: string) => {
    const trust = folderLayout(folder).eventstoreCert;
    const client = connectTo({ url: `esdb://any:${key}@${door.address}?tlsCAFile=${trust}`, prefix: '' });
    clients.push(client);
    return client;
  };
  const typesIn = async (client: EventStoreDBClient) => {
    const types: string[] = [];
    for await (const { event } of client.readAll()) types.push(event?.type ?? '');
    return types;
  };
  const denied = (code: string) => ({ type: 'access-denied', message: expect.stringContaining(code) });

  it('open it for reading, those of staff itself and those of its members', async () => {
    const key = await issue('staff', ['log']);
    expect(await typesIn(connect(key.text))).toEqual(['ApiKeyIssued']);
    await enrol('olga');
    await joinStaff('olga');
    await appoint('olga');
    const client = connect((await issue('olga', ['read', 'log'])).text);
    expect((await typesIn(client)).slice(-2)).toEqual(['MemberSet', 'ApiKeyIssued']);
  });

  it('never open it for writing', async () => {
    const client = connect((await issue('staff', ['log'])).text);
    const credentials = { username: 'any', password: (await issue('staff', ['log'])).text };
    for (const options of [{}, { credentials }]) {
      const append = client.appendToStream('note-1', jsonEvent({ type: 'Added', data: {} }), options);
      await expect(append).rejects.toMatchObject({ type: 'access-denied' });
    }
    await expect(client.tombstoneStream('account-staff')).rejects.toMatchObject(denied('AUTH.FORBIDDEN'));
    expect(await log.head('note-1')).toBeUndefined();
  });

  it('open nothing without the scope, with another secret, or once they are revoked', async () => {
    const narrow = await issue('staff', ['read']);
    await expect(typesIn(connect(narrow.text))).rejects.toMatchObject(denied('AUTH.SCOPE'));
    const { keyId, text } = await issue('staff', ['log']);
    const forged = `${text.slice(0, -64)}${'0'.repeat(64)}`;
    await expect(typesIn(connect(forged))).rejects.toMatchObject(denied('AUTH.UNAUTHENTICATED'));
    const client = connect(text);
    expect(await typesIn(client)).toHaveLength(2);
    await revoke('staff', keyId);
    await expect(typesIn(client)).rejects.toMatchObject(denied('AUTH.UNAUTHENTICATED'));
  });

  it('open nothing for those who were not appointed, or are of staff no longer', async () => {
    await enrol('olga');
    await joinStaff('olga');
    const client = connect((await issue('olga', ['log'])).text);
    await expect(typesIn(client)).rejects.toMatchObject(denied('AUTH.FORBIDDEN'));
    await appoint('olga');
    expect(await typesIn(client)).toContain('MemberSet');
    await handle(new RemoveMember({ accountId: 'staff', memberId: 'olga' }, meta()));
    await expect(typesIn(client)).rejects.toMatchObject(denied('AUTH.FORBIDDEN'));
  });

  it.each([
    ['the log', (client: EventStoreDBClient) => client.subscribeToAll({ fromPosition: 'start' })],
    ['a stream', (client: EventStoreDBClient) => client.subscribeToStream('account-eve', { fromRevision: 'start' })],
  ])('that are revoked cut whoever follows %s, before the next event', async (_what, follow) => {
    const { keyId, text } = await issue('staff', ['log']);
    await enrol('eve');
    const seen: string[] = [];
    let ended: Error | undefined;
    const subscription = follow(connect(text));
    subscription.on('error', (error) => {
      ended = error;
    });
    subscription.on('data', ({ event }) => seen.push(event?.type ?? ''));
    await until(() => seen.includes('PersonEnrolled'));
    await revoke('staff', keyId);
    await joinStaff('eve');
    await until(() => ended !== undefined);
    expect(ended).toMatchObject(denied('AUTH.UNAUTHENTICATED'));
    expect(seen).not.toContain('OrganisationJoined');
    expect(seen).not.toContain('ApiKeyRevoked');
  });
});
