import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossipPb from '@eventstore/db-client/generated/gossip_pb.js';
import featuresGrpc from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import featuresPb from '@eventstore/db-client/generated/serverfeatures_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type {
  AppendReq,
  AppendResp,
  BatchAppendReq,
  BatchAppendResp,
  ReadReq,
  ReadResp,
} from '@eventstore/db-client/generated/streams_pb.js';
import type {
  Metadata,
  ServerDuplexStream,
  ServerReadableStream,
  ServerWritableStream,
  sendUnaryData,
  UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { type Serving, serve, type Tls } from '../../proto/serve.js';
import { type Actor, AgonError, type Ids, isAgonError } from '../../services/kernel/index.js';
import { type Append, type AppendPorts, createAppend, Proposals } from './appends.js';
import {
  actualRevisionOf,
  appendMessage,
  batchError,
  batchMessage,
  batchSuccess,
  type Expectation,
  nameOf,
  refusalOf,
  ticksOf,
  uuidOf,
  uuidText,
  wrongExpectedMessage,
} from './messages.js';
import { follow, orderOf, read } from './reads.js';

/** Who somebody is at this endpoint, and whether they may do more than read. */
export interface Access {
  readonly actor: Actor;
  readonly write: boolean;
}

export interface EventStorePorts extends AppendPorts {
  readonly ids: Ids;
  /** Whose key this is at this moment; without a key, who anybody is. Undefined for nobody. */
  accessOf(key: string | undefined): Access | undefined | Promise<Access | undefined>;
  onInternalError(error: unknown): void;
}

export interface ServerOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** PEM, or what gives it. Without it the endpoint is plain HTTP/2, over which most clients send no key. */
  readonly tls?: Tls | (() => Tls);
}

/** The version of EventStoreDB's protocol that is spoken here. */
const PROTOCOL_VERSION = '23.10.0';
const UNFINISHED_MAX = 64;
const IN_FLIGHT_MAX = 256;
const NAME = 'event_store.client.streams.Streams';

/**
 * Opens an endpoint at which EventStoreDB's clients, in any language, can read, filter and follow the log, and append to it
 * with a key that allows it. Nothing can be deleted: the log is immutable.
 */
export async function serveEventStore(ports: EventStorePorts, options: ServerOptions): Promise<Serving> {
  const closing = new AbortController();
  const address = { host: options.host, port: options.port };
  const serving = await serve({
    ...options,
    services: [
      [streamsGrpc.StreamsService as never, streams(ports, closing.signal)],
      [featuresGrpc.ServerFeaturesService as never, { getSupportedMethods: answer(supportedMethods) }],
      [gossipGrpc.GossipService as never, { read: answer((call) => clusterOf(reachedBy(call, address), ports.ids())) }],
    ],
    names: [NAME],
    serving: () => true,
    closing,
  });
  address.port = Number(serving.address.slice(serving.address.lastIndexOf(':') + 1));
  return serving;
}

const answer =
  <T>(make: (call: { getHost(): string }) => T) =>
  (call: { getHost(): string }, callback: sendUnaryData<T>) =>
    callback(null, make(call));

function streams(ports: EventStorePorts, closing: AbortSignal): UntypedServiceImplementation {
  const append = createAppend(ports);
  const refused = (error: unknown) => refusalOf(error, ports.onInternalError);
  const immutable = (call: { metadata: Metadata }, callback: sendUnaryData<never>) => {
    writerOf(ports, call.metadata)
      .then(() => {
        throw new AgonError('STORE.IMMUTABLE', 'The log is immutable: no stream of it can be deleted.');
      })
      .catch((error: unknown) => callback(refused(error)));
  };
  return {
    read: (call: ServerWritableStream<ReadReq, ReadResp>) => {
      answerRead(ports, call, closing).then(
        () => call.end(),
        (error: unknown) => call.emit('error', refused(error)),
      );
    },
    append: (call: ServerReadableStream<AppendReq, AppendResp>, callback: sendUnaryData<AppendResp>) => {
      takeAppend(ports, append, call).then(
        (response) => callback(null, response),
        (error: unknown) => callback(refused(error)),
      );
    },
    batchAppend: (call: ServerDuplexStream<BatchAppendReq, BatchAppendResp>) => {
      // Nothing is read from the call before somebody listens to it.
      writerOf(ports, call.metadata).then(
        ({ actor }) => takeAppends(actor, append, call, closing, ports.onInternalError),
        (error: unknown) => call.emit('error', refused(error)),
      );
    },
    delete: immutable,
    tombstone: immutable,
  };
}

async function accessOf(ports: EventStorePorts, metadata: Metadata): Promise<Access> {
  const [header] = metadata.get('authorization');
  const [, scheme = '', value = ''] = /^(basic|bearer) (\S+)$/i.exec(String(header ?? '')) ?? [];
  const basic = /^basic$/i.test(scheme) ? Buffer.from(value, 'base64').toString('utf8') : undefined;
  const key = header === undefined ? undefined : basic === undefined ? value : basic.slice(basic.indexOf(':') + 1);
  const access = await ports.accessOf(key);
  if (access) return access;
  throw new AgonError(
    'AUTH.UNAUTHENTICATED',
    key === undefined
      ? 'This needs a key: send it as the password. Most clients do that over TLS only.'
      : 'The key is not known here.',
  );
}

async function writerOf(ports: EventStorePorts, metadata: Metadata): Promise<Access> {
  const access = await accessOf(ports, metadata);
  if (access.write) return access;
  throw new AgonError('AUTH.FORBIDDEN', 'This key is for reading only.');
}

async function answerRead(
  ports: EventStorePorts,
  call: ServerWritableStream<ReadReq, ReadResp>,
  closing: AbortSignal,
): Promise<void> {
  /** Asked again with every page: who follows stays for days, and a key can be revoked meanwhile. */
  const assertMay = async () => void (await accessOf(ports, call.metadata));
  const gone = new AbortController();
  call.once('cancelled', () => gone.abort());
  const signal = AbortSignal.any([gone.signal, closing]);
  const send = async (response: ReadResp) => {
    if (signal.aborted) return false;
    if (!call.write(response)) await drained(call, signal);
    return !signal.aborted;
  };
  await assertMay();
  const order = orderOf(call.request);
  const caller = { send, assertMay };
  if (order.limit === undefined) await follow(ports.store, order, caller, signal, ports.ids());
  else await read(ports.store, order, caller);
  // Somebody who follows comes back when they hear this, here or elsewhere.
  if (closing.aborted) throw new AgonError('STORE.CLOSED', 'This endpoint is closing.');
}

const drained = (call: NodeJS.EventEmitter, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const go = () => {
      call.off('drain', go);
      signal.removeEventListener('abort', go);
      resolve();
    };
    call.once('drain', go);
    signal.addEventListener('abort', go, { once: true });
    if (signal.aborted) go();
  });

async function takeAppend(
  ports: EventStorePorts,
  append: Append,
  call: ServerReadableStream<AppendReq, AppendResp>,
): Promise<AppendResp> {
  const { actor } = await writerOf(ports, call.metadata);
  const proposals = new Proposals();
  let options: AppendReq.Options | undefined;
  for await (const request of call as AsyncIterable<AppendReq>) {
    options ??= request.getOptions();
    const message = request.getProposedMessage();
    if (message) proposals.add(message as never);
  }
  if (!options) throw new AgonError('STORE.EMPTY_APPEND', 'An append begins with its stream.');
  const expected = expectedOf(options, options.hasRevision() ? options.getRevision() : undefined);
  try {
    return appendMessage(await append(nameOf(options.getStreamIdentifier()), expected, proposals.events, actor));
  } catch (error) {
    if (!isAgonError(error, 'STORE.REVISION_CONFLICT')) throw error;
    return wrongExpectedMessage(expected, actualRevisionOf(error));
  }
}

function expectedOf(
  options: Pick<AppendReq.Options, 'hasNoStream' | 'hasStreamExists'>,
  revision?: string,
): Expectation {
  if (revision !== undefined) return Number(BigInt.asUintN(64, BigInt(revision)));
  return options.hasNoStream() ? 'no_stream' : options.hasStreamExists() ? 'stream_exists' : 'any';
}

interface PartialAppend {
  readonly stream: string;
  readonly expected: Expectation;
  readonly proposals: Proposals;
  /** Why it will be refused, once it is complete. */
  fault?: unknown;
}

/** Many appends over one call: each is answered on its own, under its id, as soon as it is durable. */
function takeAppends(
  actor: Actor,
  append: Append,
  call: ServerDuplexStream<BatchAppendReq, BatchAppendResp>,
  closing: AbortSignal,
  onInternal: (error: unknown) => void,
): void {
  const unfinished = new Map<string, PartialAppend>();
  const gone = new AbortController();
  const signal = AbortSignal.any([gone.signal, closing]);
  /** One wait for all answers that found the call full. */
  let draining: Promise<void> | undefined;
  let inFlight = 0;
  let ended = false;
  const finish = () => {
    if (ended && inFlight === 0) call.end();
  };
  const leave = () => {
    if (!call.destroyed) call.emit('error', refusalOf(new AgonError('STORE.CLOSED', 'This endpoint is closing.')));
  };
  const complete = async (request: BatchAppendReq, { stream, expected, proposals, fault }: PartialAppend) => {
    inFlight += 1;
    if (inFlight >= IN_FLIGHT_MAX) call.pause();
    const response = batchMessage(request.getCorrelationId(), stream);
    try {
      if (fault) throw fault;
      response.setSuccess(batchSuccess(await append(stream, expected, proposals.events, actor)));
    } catch (error) {
      response.setError(batchError(error, expected, onInternal));
    }
    // Somebody who sends and does not read has it count as under way until they do.
    if (!gone.signal.aborted && !call.write(response)) {
      draining ??= drained(call, signal).then(() => {
        draining = undefined;
      });
      await draining;
    }
    inFlight -= 1;
    if (inFlight < IN_FLIGHT_MAX) call.resume();
    finish();
  };
  call.on('data', (request: BatchAppendReq) => {
    const id = uuidText(request.getCorrelationId());
    const options = request.getOptions();
    let one = unfinished.get(id);
    if (!one) {
      const revision =
        options && options.getExpectedStreamPositionCase() === 2 ? options.getStreamPosition() : undefined;
      const expected = options ? expectedOf(options, revision) : 'any';
      one = { stream: nameOf(options?.getStreamIdentifier()), expected, proposals: new Proposals() };
      if (unfinished.size >= UNFINISHED_MAX) one.fault = new AgonError('STORE.TOO_LARGE', 'Finish some appends first.');
    }
    try {
      if (!one.fault) for (const message of request.getProposedMessagesList()) one.proposals.add(message);
    } catch (error) {
      one.fault = error;
    }
    if (!request.getIsFinal()) {
      unfinished.set(id, one);
      return;
    }
    unfinished.delete(id);
    void complete(request, one);
  });
  call.on('end', () => {
    ended = true;
    finish();
  });
  call.on('error', () => {}).once('cancelled', () => gone.abort());
  if (call.cancelled) gone.abort();
  if (closing.aborted) leave();
  closing.addEventListener('abort', leave, { once: true });
  call.once('close', () => closing.removeEventListener('abort', leave));
}

function supportedMethods() {
  const method = (service: string, name: string, features: string[] = []) =>
    new featuresPb.SupportedMethod().setServiceName(service).setMethodName(name).setFeaturesList(features);
  const methods = [
    method('event_store.client.streams.streams', 'read', ['position', 'events']),
    method('event_store.client.streams.streams', 'append'),
    method('event_store.client.streams.streams', 'batchappend'),
    method('event_store.client.gossip.gossip', 'read'),
    method('event_store.client.server_features.serverfeatures', 'getsupportedmethods'),
  ];
  return new featuresPb.SupportedMethods().setMethodsList(methods).setEventStoreServerVersion(PROTOCOL_VERSION);
}

/** Where clients shall come to. Who listens on all addresses has none to name, but the caller has found one. */
export function reachedBy(call: { getHost(): string }, { host, port }: { host: string; port: number }) {
  if (!['0.0.0.0', '::', '[::]'].includes(host)) return { host, port };
  const [, asked, at] = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(call.getHost()) ?? [];
  return { host: asked ?? host, port: at === undefined ? port : Number(at) };
}

/** A cluster of one, which leads. */
function clusterOf({ host, port }: { host: string; port: number }, id: string) {
  const endpoint = new gossipPb.EndPoint().setAddress(host).setPort(port);
  const member = new gossipPb.MemberInfo()
    .setInstanceId(uuidOf(id, true))
    .setTimeStamp(`${ticksOf(Date.now())}`)
    .setState(8)
    .setIsAlive(true)
    .setHttpEndPoint(endpoint);
  return new gossipPb.ClusterInfo().setMembersList([member]);
}
