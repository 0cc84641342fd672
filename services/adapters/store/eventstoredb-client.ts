import db, { type EventStoreDBClient, type Filter, type ResolvedEvent } from '@eventstore/db-client';
import converting from '@eventstore/db-client/dist/utils/convertGrpcEvent.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import type { StreamsClient } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import {
  type CallOptions,
  type Channel,
  type ClientReadableStream,
  credentials as grpcCredentials,
  type Metadata,
} from '@grpc/grpc-js';
import { namingNoAddress } from '../../../sdk/typescript/tls.js';
import { AgonError } from '../../kernel/index.js';
import { type Address, shownAddress } from './eventstoredb-address.js';

/** What the client has and does not show: a filter for reads of all, a key without TLS, and an end. */
interface Inside {
  callArguments(base: object, options?: CallOptions): [Metadata, CallOptions];
  GRPCStreamCreator(
    client: typeof StreamsClient,
    name: string,
    create: (client: StreamsClient) => ClientReadableStream<ReadResp>,
  ): () => Promise<ClientReadableStream<ReadResp>>;
  getChannel(): Promise<Channel>;
}

const inside = (client: EventStoreDBClient) => client as unknown as Inside;

let addressesNamed = true;
/** The client makes its credentials by itself, and uses them to look for nodes before there is a channel: all are mended. */
function nameNoAddress(): void {
  if (addressesNamed) namingNoAddress(Object.getPrototypeOf(grpcCredentials.createSsl()));
  addressesNamed = false;
}

export function connect({ url }: Address): EventStoreDBClient {
  nameNoAddress();
  let client: EventStoreDBClient;
  try {
    client = db.EventStoreDBClient.connectionString(url);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new AgonError('CONFIG.INVALID', `${shownAddress(url)} is not an address of EventStoreDB: ${why}`);
  }
  // Without TLS the client keeps the key to itself. Our own endpoint asks for it there, too.
  const [, credentials] = /^[^:]+:\/\/([^@/]+:[^@/]+)@/.exec(url) ?? [];
  if (credentials && /[?&]tls=false/i.test(url)) {
    const header = `Basic ${Buffer.from(decodeURIComponent(credentials)).toString('base64')}`;
    const hidden = inside(client);
    const plain = hidden.callArguments;
    hidden.callArguments = (base, options) => {
      const [metadata, { credentials: _unused, ...rest }] = plain(base, options);
      metadata.set('authorization', header);
      return [metadata, rest];
    };
  }
  return client;
}

/** The client at hand. One that has found nobody is put away for a new one, which looks anew. */
export class Connection {
  client: EventStoreDBClient;

  constructor(private readonly address: Address) {
    this.client = connect(address);
  }

  /** Calls that are under way on the old one are cut, and repeated by whoever made them. */
  renew(failed: EventStoreDBClient): void {
    if (failed !== this.client) return;
    this.client = connect(this.address);
    disconnect(failed).catch(() => {});
  }

  close(): Promise<void> {
    return disconnect(this.client);
  }
}

export async function disconnect(client: EventStoreDBClient): Promise<void> {
  await client.dispose();
  await inside(client)
    .getChannel()
    .then(
      (channel) => channel.close(),
      () => {},
    );
}

/** A page of all as a server is asked for it: forwards with the event at `place`, backwards without it. */
interface ServerPage {
  readonly place: number | 'start' | 'end';
  readonly limit: number;
  readonly backwards?: boolean | undefined;
}

/** A page of all, filtered by the server, which the client's own `readAll` cannot ask for. */
export async function* readAllFiltered(
  client: EventStoreDBClient,
  { place, limit, backwards = false }: ServerPage,
  filter: Filter,
): AsyncGenerator<ResolvedEvent> {
  const all = new streamsPb.ReadReq.Options.AllOptions();
  if (place === 'start') all.setStart(new sharedPb.Empty());
  else if (place === 'end') all.setEnd(new sharedPb.Empty());
  else {
    const position = new streamsPb.ReadReq.Options.Position();
    all.setPosition(position.setCommitPosition(`${place}`).setPreparePosition(`${place}`));
  }
  const options = new streamsPb.ReadReq.Options()
    .setAll(all)
    .setReadDirection(backwards ? 1 : 0)
    .setCount(`${limit}`)
    .setFilter(filterMessage(filter))
    .setUuidOption(new streamsPb.ReadReq.Options.UUIDOption().setString(new sharedPb.Empty()));
  const request = new streamsPb.ReadReq().setOptions(options);
  const { callArguments, GRPCStreamCreator } = inside(client);
  const create = GRPCStreamCreator(streamsGrpc.StreamsClient, 'readAll', (grpc) =>
    grpc.read(request, ...callArguments({}, { deadline: Number.POSITIVE_INFINITY })),
  );
  for await (const response of (await create()) as AsyncIterable<ReadResp>) {
    const event = response.getEvent();
    if (event) yield converting.convertGrpcEvent(event);
  }
}

function filterMessage(filter: Filter) {
  const expression = new streamsPb.ReadReq.Options.FilterOptions.Expression();
  if ('prefixes' in filter) expression.setPrefixList(filter.prefixes as string[]);
  if ('regex' in filter) expression.setRegex(filter.regex as string);
  const message = new streamsPb.ReadReq.Options.FilterOptions()
    .setCount(new sharedPb.Empty())
    .setCheckpointintervalmultiplier(1);
  if (filter.filterOn === 'streamName') return message.setStreamIdentifier(expression);
  return message.setEventType(expression);
}
