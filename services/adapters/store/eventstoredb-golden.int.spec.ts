import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { Client, credentials, Metadata, Server, ServerCredentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KEYS, openEndpoint } from '../../../gateway/eventstore/endpoint.contract.js';
import { contentId, fromWire, toWire } from '../../../proto/eventstore.js';
import { recomputeHash, type SealedEvent } from '../../kernel/index.js';
import { EventStoreDbStore } from './eventstoredb.js';
import { golden } from './golden.contract.js';
import { MemoryEventStore } from './memory.js';

const bytesOf = (message: string) => Buffer.from(message, 'base64');
const proposals = golden.written.flatMap(({ message }) =>
  streamsPb.BatchAppendReq.deserializeBinary(bytesOf(message)).getProposedMessagesList(),
);
const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8');

describe('events that an earlier version wrote to EventStoreDB', () => {
  it('are read as the events that they were, with hashes that fit', () => {
    expect(proposals).toHaveLength(golden.events.length);
    for (const [i, { position: _position, ...event }] of golden.events.entries()) {
      const [data, metadata] = [proposals[i]!.getData_asU8(), proposals[i]!.getCustomMetadata_asU8()].map(textOf);
      const { stream, revision, type } = event;
      const read = fromWire({ stream, revision, type, data: JSON.parse(data!), metadata: JSON.parse(metadata!) });
      expect(read).toEqual(event);
      expect(recomputeHash(read)).toBe(event.hash);
    }
  });

  it('are what is written of them today, under the same ids: so an append may be repeated by either', () => {
    for (const [i, event] of golden.events.entries()) {
      const proposal = proposals[i]!;
      const { data, metadata } = toWire(event as SealedEvent);
      expect(textOf(proposal.getData_asU8())).toBe(JSON.stringify(data));
      expect(textOf(proposal.getCustomMetadata_asU8())).toBe(JSON.stringify(metadata));
      expect(proposal.getId()!.getString()).toBe(contentId(event));
    }
  });

  it('are taken by the endpoint of today as they are sent', async () => {
    const store = new MemoryEventStore();
    const door = await openEndpoint(store);
    const client = new Client(door.address, credentials.createInsecure());
    const metadata = new Metadata();
    metadata.set('authorization', `Basic ${Buffer.from(`any:${KEYS.writer}`).toString('base64')}`);
    const path = streamsGrpc.StreamsService.batchAppend.path;
    const raw = (bytes: Buffer) => bytes;
    const answers: streamsPb.BatchAppendResp[] = [];
    const call = client.makeBidiStreamRequest(path, raw, streamsPb.BatchAppendResp.deserializeBinary, metadata);
    const over = new Promise<void>((resolve, reject) => call.on('end', resolve).on('error', reject));
    call.on('data', (answer) => answers.push(answer));
    for (const { message } of golden.written) call.write(bytesOf(message));
    await expect.poll(() => answers.length, { timeout: 60_000 }).toBe(golden.written.length);
    call.end();
    await over;
    client.close();
    await door.close();
    expect(answers.filter((answer) => !answer.hasSuccess())).toEqual([]);
    expect(await store.readAll({ limit: 1_000 })).toEqual(golden.events);
  });
});

/** Whatever it is asked, it answers with what was read then; the client takes from it what it asked for. */
async function serverOfThen(): Promise<{ address: string; close(): void }> {
  const server = new Server();
  const raw = (bytes: Buffer) => bytes;
  const { read } = streamsGrpc.StreamsService;
  const { deserializeBinary } = streamsPb.ReadReq;
  server.addService(
    { read: { ...read, responseSerialize: raw, requestDeserialize: (bytes: Buffer) => deserializeBinary(bytes) } },
    {
      read: (call: { request: streamsPb.ReadReq; write(bytes: Buffer): void; end(): void }) => {
        const options = call.request.getOptions()!;
        const backwards = options.getReadDirection() === 1;
        const answers = backwards ? [...golden.read].reverse() : golden.read;
        for (const answer of answers.slice(0, Number(options.getCount()))) call.write(bytesOf(answer));
        call.end();
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  return { address: `127.0.0.1:${port}`, close: () => server.forceShutdown() };
}

describe('a server that answers as it did to an earlier version', () => {
  let server: Awaited<ReturnType<typeof serverOfThen>>;
  beforeAll(async () => {
    server = await serverOfThen();
  });
  afterAll(() => server.close());

  it('is read by the adapter of today', async () => {
    const store = await EventStoreDbStore.open(`esdb://${server.address}?tls=false`);
    expect(await store.readAll({ limit: 1_000 })).toEqual(golden.events);
    expect(await store.lastPosition()).toBe(golden.events.length);
    await store.close();
  });
});
