import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import featuresGrpc from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { credentials, Metadata } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { type Endpoint, KEYS, openEndpoint } from './endpoint.contract.js';

/** Calls recorded from a real server, and its answers. They are no part of this repository. */
const file = join(resolve(env.AGON_VECTORS ?? '../shared/vectors'), 'eventstoredb.json');

// biome-ignore lint/suspicious/noExplicitAny: messages of forty kinds, built from what was recorded of them.
type Json = any;
interface Vector {
  readonly name: string;
  readonly method: string;
  readonly request: Json;
  readonly response: readonly Json[];
  readonly status: { readonly code?: number; readonly trailers?: Record<string, string> };
}

const IMMUTABLE = 'the log is immutable: nothing is deleted, and what follows from a deletion is not there';
const NOTES = 'streams have no metadata here, and names and types of the system are not for clients';
const JSON_ONLY = 'the log holds JSON alone';
const SAYS_WHY = 'refused as an invalid argument, with what is wrong in it, instead of as unknown';
const LIMITS = 'the limits are those of every store of Agon: 512 KiB an event, 512 events an append';
const NOT_HERE = 'there are no persistent subscriptions and no users here';

/** Where our endpoint means to answer otherwise, and why. */
const DIFFERENT: readonly (readonly [names: RegExp, why: string])[] = [
  [/^persistent: |^users: /, NOT_HERE],
  [/append nothing|^batch: nothing$/, 'nothing takes no place: its position is that of the last event'],
  [/^all forwards, streams by prefix$/, 'the sixth event is one of bytes, which this log does not hold'],
  [
    /^subscribe to all (by prefix after|from the end)/,
    'who has caught up is told by a checkpoint as well how far that was',
  ],
  [/^server features$/, 'it lists what is served here'],
  [
    /^repeat: same id, other data$/,
    'other content is another event, whatever its id: a log that is verified cannot say yes',
  ],
  [/^append (bytes|what is not JSON as JSON)$/, JSON_ONLY],
  [/^append an empty type$|^append to an empty stream name$|a pattern that is none$|checkpoint interval 0$/, SAYS_WHY],
  [/^append (1 MiB and more|600 KiB|600 small)/, LIMITS],
  [/^append (to a system stream|a system type)$|metadata$|only the last is kept$/, NOTES],
  [/^all, none \(count 0\)$/, 'nothing is nothing, at once; the server lets the caller wait'],
  [
    /^subscribe to all by prefix from the start$/,
    'checkpoints come by how many events there are, and this log has fewer',
  ],
  [/^batch: no options$/, 'refused by name; the server never answers'],
  [/delete|tombstone|goes on$/, IMMUTABLE],
];

/** What a caller of the raw service sees. */
interface Answer {
  readonly response: Json[];
  readonly code: number | 'open';
  readonly trailers: Record<string, string>;
}

const utf8 = (value: Json): Buffer => {
  if (typeof value === 'string') return Buffer.from(value);
  if ('base64' in value) return Buffer.from(value.base64, 'base64');
  return Buffer.from(JSON.stringify({ text: 'x'.repeat(value.bytes - 11) }));
};

const identifier = ({ streamName }: Json) => new sharedPb.StreamIdentifier().setStreamName(utf8(streamName));
const empty = () => new sharedPb.Empty();
const uuid = ({ string }: Json) => new sharedPb.UUID().setString(string);

function proposed(message: Json, given: Json): Json {
  message.setId(uuid(given.id)).setCustomMetadata(utf8(given.customMetadata)).setData(utf8(given.data));
  for (const [key, value] of given.metadataMap) message.getMetadataMap().set(key, value);
  return message;
}

function expecting(options: Json, given: Json, setRevision: (revision: string) => void): void {
  if (given.any) options.setAny(empty());
  else if (given.noStream) options.setNoStream(empty());
  else if (given.streamExists) options.setStreamExists(empty());
  else setRevision(given.revision ?? given.streamPosition);
}

function appendRequests(request: readonly Json[]): Json[] {
  return request.flatMap((each) => {
    const message = new streamsPb.AppendReq();
    if (typeof each === 'string') return [];
    if (each.proposedMessage) {
      return [message.setProposedMessage(proposed(new streamsPb.AppendReq.ProposedMessage(), each.proposedMessage))];
    }
    const options = new streamsPb.AppendReq.Options().setStreamIdentifier(identifier(each.options.streamIdentifier));
    expecting(options, each.options, (revision) => options.setRevision(revision));
    return [message.setOptions(options)];
  });
}

function batchRequests(request: readonly Json[]): Json[] {
  return request.map(({ correlationId, options: given, proposedMessagesList, isFinal }) => {
    const message = new streamsPb.BatchAppendReq().setCorrelationId(uuid(correlationId)).setIsFinal(isFinal);
    for (const each of proposedMessagesList) {
      message.addProposedMessages(proposed(new streamsPb.BatchAppendReq.ProposedMessage(), each));
    }
    if (!given) return message;
    const options: Json = new streamsPb.BatchAppendReq.Options();
    options.setStreamIdentifier(identifier(given.streamIdentifier));
    // Its word for an empty message is another one than elsewhere.
    for (const word of ['Any', 'NoStream', 'StreamExists']) {
      if (given[word.charAt(0).toLowerCase() + word.slice(1)]) options[`set${word}`](emptyOf());
    }
    if (!given.any && !given.noStream && !given.streamExists) options.setStreamPosition(given.streamPosition);
    return message.setOptions(options);
  });
}

function readRequest({ options: given }: Json, name: string, placeOf: (position: string) => string): Json {
  const options = new streamsPb.ReadReq.Options().setReadDirection(given.readDirection);
  const place = given.stream ?? given.all;
  const target: Json = given.stream
    ? new streamsPb.ReadReq.Options.StreamOptions().setStreamIdentifier(identifier(given.stream.streamIdentifier))
    : new streamsPb.ReadReq.Options.AllOptions();
  if (place?.start) target.setStart(empty());
  else if (place?.end) target.setEnd(empty());
  else if (given.stream) target.setRevision(place.revision);
  else if (place) {
    const { commitPosition: commit, preparePosition: prepare } = place.position;
    const position = new streamsPb.ReadReq.Options.Position();
    target.setPosition(position.setCommitPosition(placeOf(commit)).setPreparePosition(placeOf(prepare)));
  }
  if (given.stream) options.setStream(target);
  else if (given.all) options.setAll(target);
  if (given.subscription) options.setSubscription(new streamsPb.ReadReq.Options.SubscriptionOptions());
  else if (name !== 'read without a count') options.setCount(given.count);
  if (given.filter) options.setFilter(filterOf(given.filter));
  else options.setNoFilter(empty());
  const ids = new streamsPb.ReadReq.Options.UUIDOption();
  options.setUuidOption(given.uuidOption.structured ? ids.setStructured(empty()) : ids.setString(empty()));
  if (given.controlOption) {
    options.setControlOption(new streamsPb.ReadReq.Options.ControlOption().setCompatibility(1));
  }
  return new streamsPb.ReadReq().setOptions(options);
}

function filterOf(given: Json) {
  const filter = new streamsPb.ReadReq.Options.FilterOptions();
  const { regex, prefixList } = given.streamIdentifier ?? given.eventType;
  const expression = new streamsPb.ReadReq.Options.FilterOptions.Expression().setRegex(regex).setPrefixList(prefixList);
  if (given.streamIdentifier) filter.setStreamIdentifier(expression);
  else filter.setEventType(expression);
  if (given.count) filter.setCount(empty());
  else filter.setMax(given.max);
  return filter.setCheckpointintervalmultiplier(given.checkpointintervalmultiplier);
}

const emptyOf = () => new (empties())();
let emptyClass: Json;
const empties = () => emptyClass;

const BYTES = new Set(['streamName', 'data', 'customMetadata', 'value']);
const ENVELOPE = new Set([
  ...['id', 'version', 'time', 'commandId', 'inputHash', '$correlationId', '$causationId', 'actor', 'prevHash', 'hash'],
  'enclosed',
]);

/** Bytes as the recording shows them; the envelope that every event here brings along is not looked at. */
function shown(value: Json, key = ''): Json {
  if (Array.isArray(value)) return value.map((each) => shown(each));
  if (BYTES.has(key) && typeof value === 'string') {
    const text = Buffer.from(value, 'base64').toString('utf8');
    if (key === 'value') return value;
    if (key !== 'customMetadata' || text === '') return text;
    const own = Object.entries(JSON.parse(text)).filter(([name]) => !ENVELOPE.has(name));
    return own.length === 0 ? '' : JSON.stringify(Object.fromEntries(own));
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]) => (each === undefined ? [] : [[name, shown(each, name)]])),
  );
}

/** Random, a time, or an address; or of clients of 2020, which are served no more. */
const LEFT_OUT = new Set(['subscriptionId', 'instanceId', 'timeStamp', 'httpEndPoint', 'message', 'created']);

/** The same with events in place of positions: which stand where is another matter in every log. */
function comparable(value: Json, eventAt: ReadonlyMap<string, string>, key = ''): Json {
  if (key === 'commitPosition' || key === 'preparePosition') return eventAt.get(value) ?? 'another place';
  if (key === 'metadataMap') return Object.fromEntries(value.filter(([name]: [string]) => !LEFT_OUT.has(name)));
  if (Array.isArray(value)) return value.map((each) => comparable(each, eventAt));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([name]) => !LEFT_OUT.has(name) && !name.endsWith('2060'));
  return Object.fromEntries(entries.map(([name, each]) => [name, comparable(each, eventAt, name)]));
}

/** Notes the positions of events that a call or its answer names. */
function learn({ request, response }: Pick<Vector, 'request' | 'response'>, eventAt: Map<string, string>): void {
  for (const { event, success, streamIdentifier } of response) {
    const read = event?.event;
    if (read) eventAt.set(read.commitPosition, `${read.streamIdentifier.streamName}@${read.streamRevision}`);
    const stream = (streamIdentifier ?? request?.[0]?.options?.streamIdentifier)?.streamName;
    if (success && !success.noStream && (request[0].proposedMessagesList?.length ?? request.length - 1) > 0) {
      eventAt.set(success.position.commitPosition, `${stream}@${success.currentRevision}`);
    }
  }
}

describe.skipIf(!existsSync(file))(
  `the endpoint answers as a server (${existsSync(file) ? file : `not tried: no ${file}`})`,
  () => {
    const { vectors = [] }: { vectors?: Vector[] } = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
    const [theirs, ours] = [new Map<string, string>(), new Map<string, string>()];
    const answers = new Map<Vector, Answer>();
    let endpoint: Endpoint;
    const metadata = new Metadata();
    metadata.set('authorization', `Basic ${Buffer.from(`any:${KEYS.writer}`).toString('base64')}`);

    const ending = (call: Json, response: Json[], expected: number, isStill: boolean): Promise<Answer> =>
      new Promise((done) => {
        const answer = (code: Answer['code'], trailers: Metadata = new Metadata()) =>
          done({ response: response.map((each) => shown(each)), code, trailers: trailers.getMap() as never });
        let code = 0;
        let trailers = new Metadata();
        call.on('data', (message: Json) => response.push(message.toObject()));
        call.on('error', (error: Json) => {
          code = error.code;
          trailers = error.metadata ?? trailers;
          if (code !== 1) answer(code, trailers);
        });
        call.on('end', () => setImmediate(() => code === 0 && answer(0)));
        if (!isStill) return;
        const enough = async () => {
          for (let tries = 0; response.length < expected && tries < 300; tries++) await sleep(10);
          await sleep(20);
          call.cancel();
          answer('open');
        };
        void enough();
      });

    const ask = (client: Json, vector: Vector): Promise<Answer> => {
      const { name, method, request, response, status } = vector;
      // What is refused there and followed here would never end by itself.
      const still = (status as Json).cancelled === true || (whyOther(vector) && request.options?.subscription);
      const places = new Map([...ours].map(([position, event]) => [event, position]));
      // What is on the list may say more than was recorded.
      const count = whyOther(vector) ? Math.max(1, response.length) : response.length;
      const placeOf = (position: string) => places.get(theirs.get(position) ?? '') ?? position;
      if (method === 'Streams/Read') {
        const call = client.read(readRequest(request, name, placeOf), metadata);
        return ending(call, [], count, still);
      }
      if (method === 'Streams/BatchAppend') {
        const call = client.batchAppend(metadata);
        for (const message of batchRequests(request)) call.write(message);
        return ending(call, [], count, still);
      }
      return new Promise((done) => {
        const answer = (error: Json, message: Json) =>
          done({
            response: message ? [shown(message.toObject())] : [],
            code: error?.code ?? 0,
            trailers: error?.metadata?.getMap() ?? {},
          });
        const call = client.append(metadata, answer);
        for (const message of appendRequests(request)) call.write(message);
        call.end();
      });
    };

    beforeAll(async () => {
      emptyClass = (await import('google-protobuf/google/protobuf/empty_pb.js')).default.Empty;
      endpoint = await openEndpoint(new MemoryEventStore({ gaps: true }));
      const client: Json = new streamsGrpc.StreamsClient(endpoint.address, credentials.createInsecure());
      const unary = (service: Json, name: string): Promise<Answer> =>
        new Promise((done) => {
          const one = new service(endpoint.address, credentials.createInsecure());
          one[name](empty(), metadata, (error: Json, message: Json) => {
            one.close();
            done({ response: [shown(message.toObject())], code: error?.code ?? 0, trailers: {} });
          });
        });
      for (const vector of vectors) learn(vector, theirs);
      let [held, holding]: [Promise<Answer> | undefined, Vector | undefined] = [undefined, undefined];
      for (const [i, vector] of vectors.entries()) {
        if (whyOther(vector)?.includes(NOT_HERE) || /^Streams\/(Delete|Tombstone)/.test(vector.method)) continue;
        // It was made while the next one was under way.
        const next = vectors[i + 1];
        if (vector.name.startsWith('(append while') && next) {
          [held, holding] = [ask(client, next), next];
          await sleep(100);
        }
        const made =
          vector === holding
            ? held
            : vector.method === 'Gossip/Read'
              ? unary(gossipGrpc.GossipClient, 'read')
              : vector.method.startsWith('ServerFeatures')
                ? unary(featuresGrpc.ServerFeaturesClient, 'getSupportedMethods')
                : ask(client, vector);
        const answer = (await made) as Answer;
        answers.set(vector, answer);
        learn({ request: vector.request, response: answer.response }, ours);
      }
      client.close();
    });
    afterAll(() => endpoint?.close());

    const whyOther = ({ name }: Vector) => DIFFERENT.find(([names]) => names.test(name))?.[1];

    const said = ({ response, status }: Pick<Vector, 'response' | 'status'>, eventAt: ReadonlyMap<string, string>) => {
      // What the protocol itself needs is no part of an answer.
      const own = Object.entries(status.trailers ?? {}).filter(([name]) => !/^(content-|date$)/.test(name));
      const trailers = Object.fromEntries(own);
      const messages = response.map((each) => comparable(each, eventAt));
      // Whether a follower has caught up before or after what comes at that moment is anybody's guess.
      const at = messages.findIndex(({ caughtUp }) => caughtUp);
      const order = at < 0 ? messages : [...messages.slice(0, at), ...messages.slice(at + 1), messages[at]];
      return { messages: order, trailers, code: 'cancelled' in status ? 'open' : status.code };
    };

    it.each(vectors.filter((vector) => !whyOther(vector)))('$method: $name', (vector) => {
      const answer = answers.get(vector);
      const { response = [], code = -1, trailers = {} } = answer ?? {};
      const status = code === 'open' ? { cancelled: true, trailers } : { code, trailers };
      expect(said({ response, status }, ours)).toEqual(said(vector, theirs));
    });

    it.each(vectors.filter(whyOther))('$method: $name, otherwise', (vector) => {
      const answer = answers.get(vector);
      if (!answer) return;
      const status = answer.code === 'open' ? { cancelled: true } : { code: answer.code };
      const other = said({ ...answer, status: { ...status, trailers: answer.trailers } as never }, ours);
      // What is answered alike by now has no place on the list.
      expect(other, whyOther(vector)).not.toEqual(said(vector, theirs));
    });

    it('has the events in the order in which the server has them', () => {
      const inOrder = (places: ReadonlyMap<string, string>, others: ReadonlyMap<string, string>) => {
        const known = new Set(others.values());
        const sorted = [...places].sort(([a], [b]) => Number(a) - Number(b)).map(([, event]) => event);
        return [...new Set(sorted)].filter((event) => known.has(event));
      };
      expect(inOrder(ours, theirs)).toEqual(inOrder(theirs, ours));
      expect(ours.size).toBeGreaterThan(10);
    });
  },
);
