import type { UUID } from '@eventstore/db-client/generated/shared_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import statusPb from '@eventstore/db-client/generated/status_pb.js';
import type { BatchAppendResp, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { Metadata, type StatusObject, status } from '@grpc/grpc-js';
import anyPb from 'google-protobuf/google/protobuf/any_pb.js';
import emptyPb from 'google-protobuf/google/protobuf/empty_pb.js';
import { toWire } from '../../proto/eventstore.js';
import {
  type AgonError,
  type AppendResult,
  asAgonError,
  isAgonError,
  type RecordedEvent,
} from '../../services/kernel/index.js';

/** What an append expects of its stream: a revision, or one of the three that EventStoreDB has besides. */
export type Expectation = number | 'any' | 'no_stream' | 'stream_exists';

const ALREADY_EXISTS = 6;
const TICKS_PER_MS = 10_000n;

/** Their measure of time: ten million to a second. */
export const ticksOf = (ms: number): bigint => BigInt(ms) * TICKS_PER_MS;

export const nameOf = (identifier: { getStreamName_asU8(): Uint8Array } | undefined): string =>
  Buffer.from(identifier?.getStreamName_asU8() ?? []).toString('utf8');

const identifierOf = (stream: string) => new sharedPb.StreamIdentifier().setStreamName(Buffer.from(stream));

/** An id as text, however it was sent. */
export function uuidText(uuid: UUID | undefined): string {
  const structured = uuid?.getStructured();
  if (!structured) return uuid?.getString() ?? '';
  const bytes = Buffer.alloc(16);
  bytes.writeBigInt64BE(BigInt.asIntN(64, BigInt(structured.getMostSignificantBits())), 0);
  bytes.writeBigInt64BE(BigInt.asIntN(64, BigInt(structured.getLeastSignificantBits())), 8);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

export function uuidOf(id: string, structured: boolean): UUID {
  if (!structured) return new sharedPb.UUID().setString(id);
  const bytes = Buffer.from(id.replaceAll('-', ''), 'hex');
  const halves = new sharedPb.UUID.Structured()
    .setMostSignificantBits(`${bytes.readBigInt64BE(0)}`)
    .setLeastSignificantBits(`${bytes.readBigInt64BE(8)}`);
  return new sharedPb.UUID().setStructured(halves);
}

/** An event of the log as EventStoreDB's clients read it. Our position is both of their positions. */
export function eventMessage(event: RecordedEvent, structuredIds: boolean): ReadResp {
  const { data, metadata } = toWire(event);
  const position = `${event.position}`;
  const recorded = new streamsPb.ReadResp.ReadEvent.RecordedEvent()
    .setId(uuidOf(event.id, structuredIds))
    .setStreamIdentifier(identifierOf(event.stream))
    .setStreamRevision(`${event.revision}`)
    .setCommitPosition(position)
    .setPreparePosition(position)
    .setCustomMetadata(Buffer.from(JSON.stringify(metadata)))
    .setData(Buffer.from(JSON.stringify(data)));
  const properties = recorded.getMetadataMap();
  properties.set('type', event.type);
  properties.set('content-type', 'application/json');
  properties.set('created', `${ticksOf(Date.parse(event.time) || 0)}`);
  const read = new streamsPb.ReadResp.ReadEvent().setEvent(recorded).setCommitPosition(position);
  return new streamsPb.ReadResp().setEvent(read);
}

export const notFoundMessage = (stream: string): ReadResp =>
  new streamsPb.ReadResp().setStreamNotFound(
    new streamsPb.ReadResp.StreamNotFound().setStreamIdentifier(identifierOf(stream)),
  );

/** The first revision that could be read where there is none yet, for those who asked beyond the end. */
export const firstPlaceMessage = (revision: number): ReadResp =>
  new streamsPb.ReadResp().setFirstStreamPosition(`${revision}`);

/** With which a read of a stream ends: the last revision that there is. */
export const lastPlaceMessage = (revision: number): ReadResp =>
  new streamsPb.ReadResp().setLastStreamPosition(`${revision}`);

export const confirmationMessage = (subscriptionId: string): ReadResp =>
  new streamsPb.ReadResp().setConfirmation(
    new streamsPb.ReadResp.SubscriptionConfirmation().setSubscriptionId(subscriptionId),
  );

export const checkpointMessage = (position: number): ReadResp =>
  new streamsPb.ReadResp().setCheckpoint(
    new streamsPb.ReadResp.Checkpoint().setCommitPosition(`${position}`).setPreparePosition(`${position}`),
  );

export const caughtUpMessage = (): ReadResp => new streamsPb.ReadResp().setCaughtUp(new streamsPb.ReadResp.CaughtUp());

export const fellBehindMessage = (): ReadResp =>
  new streamsPb.ReadResp().setFellBehind(new streamsPb.ReadResp.FellBehind());

/** The answer to an append on its own. A wrong expectation is an answer there, not an error. */
export function appendMessage(result: AppendResult) {
  const position = new streamsPb.AppendResp.Position()
    .setCommitPosition(`${result.position}`)
    .setPreparePosition(`${result.position}`);
  const success = new streamsPb.AppendResp.Success().setPosition(position);
  // Nothing was added to a stream that is not there.
  if (result.revision < 0) success.setNoStream(new sharedPb.Empty());
  else success.setCurrentRevision(`${result.revision}`);
  return new streamsPb.AppendResp().setSuccess(success);
}

export function wrongExpectedMessage(expected: Expectation, actualRevision: number) {
  const wrong = new streamsPb.AppendResp.WrongExpectedVersion();
  if (actualRevision >= 0) wrong.setCurrentRevision(`${actualRevision}`);
  else wrong.setCurrentNoStream(new sharedPb.Empty());
  if (expected === 'any') wrong.setExpectedAny(new sharedPb.Empty());
  else if (expected === 'no_stream') wrong.setExpectedNoStream(new sharedPb.Empty());
  else if (expected === 'stream_exists') wrong.setExpectedStreamExists(new sharedPb.Empty());
  else wrong.setExpectedRevision(`${expected}`);
  return new streamsPb.AppendResp().setWrongExpectedVersion(wrong);
}

/** The answer to one append of many on a stream of them. */
export function batchMessage(correlationId: UUID | undefined, stream: string): BatchAppendResp {
  return new streamsPb.BatchAppendResp().setCorrelationId(correlationId).setStreamIdentifier(identifierOf(stream));
}

export function batchSuccess(result: AppendResult) {
  const position = new sharedPb.AllStreamPosition()
    .setCommitPosition(`${result.position}`)
    .setPreparePosition(`${result.position}`);
  const success = new streamsPb.BatchAppendResp.Success().setPosition(position);
  return result.revision < 0
    ? success.setNoStream(new emptyPb.Empty())
    : success.setCurrentRevision(`${result.revision}`);
}

/** A refusal inside a stream of appends: a status with details of a type that clients know. */
export function batchError(error: unknown, expected: Expectation, onInternal: (error: unknown) => void) {
  const { code, details, metadata } = refusalOf(error, onInternal);
  const [name, message] = batchDetails(error, expected, metadata, details);
  const packed = new anyPb.Any();
  packed.pack(message.serializeBinary(), `event_store.client.${name}`);
  // Inside a stream of appends, this is what it is called there.
  const status = name === 'WrongExpectedVersion' ? ALREADY_EXISTS : code;
  return new statusPb.Status()
    .setCode(status as number)
    .setMessage(details)
    .setDetails(packed);
}

function batchDetails(error: unknown, expected: Expectation, metadata: Metadata, details: string) {
  const [exception] = metadata.get('exception');
  if (exception === 'access-denied') return ['AccessDenied', new sharedPb.AccessDenied()] as const;
  if (exception === 'maximum-append-size-exceeded') {
    const max = Number(metadata.get('maximum-append-size')[0]);
    return ['MaximumAppendSizeExceeded', new sharedPb.MaximumAppendSizeExceeded().setMaxappendsize(max)] as const;
  }
  if (!isAgonError(error, 'STORE.REVISION_CONFLICT')) {
    return ['BadRequest', new sharedPb.BadRequest().setMessage(details)] as const;
  }
  const wrong = new sharedPb.WrongExpectedVersion();
  const actual = actualRevisionOf(error);
  if (actual >= 0) wrong.setCurrentStreamRevision(`${actual}`);
  else wrong.setCurrentNoStream(new emptyPb.Empty());
  if (expected === 'any') wrong.setExpectedAny(new emptyPb.Empty());
  else if (expected === 'no_stream') wrong.setExpectedNoStream(new emptyPb.Empty());
  else if (expected === 'stream_exists') wrong.setExpectedStreamExists(new emptyPb.Empty());
  else wrong.setExpectedStreamPosition(`${expected}`);
  return ['WrongExpectedVersion', wrong] as const;
}

export const actualRevisionOf = (error: AgonError): number => Number(error.details.actualRevision ?? -1);

/** The largest append that is taken, as it crosses the wire: every event brings its envelope along. */
export const APPEND_BYTES_MAX = 4 * 1024 * 1024;

/** How a refusal of ours is told to clients that know EventStoreDB's: the status, and the exception's name. */
const EXCEPTIONS: Readonly<Record<string, readonly [status, string?]>> = {
  'AUTH.UNAUTHENTICATED': [status.UNAUTHENTICATED, 'access-denied'],
  'AUTH.FORBIDDEN': [status.PERMISSION_DENIED, 'access-denied'],
  'AUTH.SCOPE': [status.PERMISSION_DENIED, 'access-denied'],
  'STORE.IMMUTABLE': [status.PERMISSION_DENIED, 'access-denied'],
  'STORE.READ_ONLY': [status.PERMISSION_DENIED, 'access-denied'],
  'STORE.TOO_LARGE': [status.INVALID_ARGUMENT, 'maximum-append-size-exceeded'],
  'STORE.REVISION_CONFLICT': [status.FAILED_PRECONDITION],
  'STORE.BAD_POSITION': [status.UNKNOWN],
  'READ.NOTHING': [status.UNKNOWN],
  'STORE.DELETED': [status.FAILED_PRECONDITION, 'stream-deleted'],
  'STORE.TRUNCATED': [status.DATA_LOSS],
  'STORE.UNAVAILABLE': [status.UNAVAILABLE],
  'STORE.FULL': [status.RESOURCE_EXHAUSTED],
  'STORE.CLOSED': [status.UNAVAILABLE],
  'STORE.CORRUPT': [status.DATA_LOSS],
  'STORE.ANOTHER_WRITER': [status.UNAVAILABLE],
  'STORE.FAILED': [status.INTERNAL],
};

/** A refusal as a gRPC status. Our own code goes first in its text, for those who know it. */
export function refusalOf(thrown: unknown, onInternal: (error: unknown) => void = () => {}): StatusObject {
  const error = asAgonError(thrown);
  const metadata = new Metadata();
  if (error.code.startsWith('INTERNAL')) {
    onInternal(thrown);
    const details = 'INTERNAL: Something went wrong inside Agon. The operator finds it in the log.';
    return { code: status.INTERNAL, details, metadata };
  }
  const [code, exception] = EXCEPTIONS[error.code] ?? [status.INVALID_ARGUMENT];
  if (exception) metadata.set('exception', exception);
  if (error.code === 'STORE.DELETED') metadata.set('stream-name', String(error.details.stream));
  if (error.code === 'STORE.TOO_LARGE') metadata.set('maximum-append-size', `${APPEND_BYTES_MAX}`);
  return { code, details: `${error.code}: ${error.message}`, metadata };
}
