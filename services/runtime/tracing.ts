import { ROOT_CONTEXT, type SpanContext, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  type IdGenerator,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Seen } from '../../gateway/observe.js';
import { type Cause, type Command, type SealedEvent, spanIdOf, traceIdOf } from '../kernel/index.js';
import type { DeliveryReport } from './observe.js';

/** The ids of the next span. Spans are made one after the other, so there is never more than one next. */
class SpanIds implements IdGenerator {
  traceId = '';
  spanId = '';
  generateTraceId = () => this.traceId;
  generateSpanId = () => this.spanId;
}

interface SpanData extends Pick<Cause, 'correlationId'> {
  readonly name: string;
  /** What the span is of: a request, a command, an event. */
  readonly id: string;
  /** The id of what it follows from, or the span of a caller. */
  readonly parentId?: string | undefined;
  readonly callerSpanId?: string | undefined;
  readonly kind?: SpanKind;
  readonly startedMs: number;
  readonly ms: number;
  readonly failed?: boolean;
  readonly attributes: Record<string, string | number>;
}

interface TracingOptions {
  /** Where the collector takes OTLP over HTTP; `/v1/traces` is put behind it. */
  readonly endpoint: string;
  /** The share of traces that are kept. It is decided by the trace's id, so that all parts of one decide alike. */
  readonly ratio: number;
  readonly version: string;
}

/**
 * Spans, told after the fact. Their ids follow from those of requests, commands and events: an event names the command
 * that made it and the whole it belongs to, so whoever reacts to it, later and elsewhere, finds its parent and its trace.
 */
export class Tracing {
  private readonly ids = new SpanIds();
  private readonly provider: TracerProvider;
  private readonly tracer;

  constructor({ endpoint, ratio, version }: TracingOptions) {
    const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces` });
    this.provider = new TracerProvider({
      resource: resourceFromAttributes({ 'service.name': 'agon', 'service.version': version }),
      sampler: new TraceIdRatioBasedSampler(ratio),
      idGenerator: this.ids,
      spanProcessors: [new BatchSpanProcessor({ exporter })],
    });
    this.tracer = this.provider.getTracer('agon', version);
  }

  /** A GraphQL operation is a part of its request over HTTP. */
  readonly onSeen = (seen: Seen): void => {
    const { door, operation, outcome, requestId, correlationId, callerSpanId, startedMs, ms, actorId } = seen;
    const part = door === 'graphql';
    this.tell({
      name: operation,
      correlationId,
      startedMs,
      ms,
      failed: outcome === 'failed',
      ...(part ? { id: `${requestId}/graphql`, parentId: requestId } : { id: requestId, callerSpanId }),
      kind: part ? SpanKind.INTERNAL : SpanKind.SERVER,
      attributes: { 'agon.door': door, 'agon.outcome': outcome, ...(actorId ? { 'enduser.id': actorId } : {}) },
    });
  };

  readonly onHandled = ({ type, meta }: Command, outcome: string, ms: number): void => {
    const { id, correlationId, causationId, actor } = meta;
    this.tell({
      name: type,
      id,
      correlationId,
      startedMs: performance.now() - ms,
      ms,
      parentId: causationId === id ? undefined : causationId,
      attributes: {
        'agon.command.id': id,
        'agon.outcome': outcome,
        'enduser.id': actor.id,
        'enduser.role': actor.role,
      },
    });
  };

  readonly onAppended = (
    { meta: { id: parentId, correlationId } }: Command,
    events: readonly SealedEvent[],
    ms: number,
  ) => {
    const startedMs = performance.now() - ms;
    for (const { type, id, stream, revision } of events) {
      const attributes = { 'agon.event.id': id, 'agon.stream': stream, 'agon.revision': revision };
      this.tell({ name: `append ${type}`, id, parentId, correlationId, startedMs, ms, attributes });
    }
  };

  readonly onDelivered = ({ group, events, ms, startedMs }: DeliveryReport): void => {
    for (const { type, id: parentId, position, meta } of events) {
      this.tell({
        name: `${group} ${type}`,
        id: `${parentId}/${group}`,
        parentId,
        startedMs,
        ms,
        correlationId: meta.correlationId,
        kind: SpanKind.CONSUMER,
        attributes: { 'agon.group': group, 'agon.position': position },
      });
    }
  };

  /** Sends what is left. A collector that is away does not keep the arena from stopping. */
  async close(): Promise<void> {
    await this.provider.shutdown().catch(() => {});
  }

  private tell(told: SpanData): void {
    const { name, id, parentId, callerSpanId, correlationId, kind = SpanKind.INTERNAL, attributes } = told;
    const traceId = traceIdOf(correlationId);
    Object.assign(this.ids, { traceId, spanId: spanIdOf(id) });
    const spanId = callerSpanId ?? (parentId === undefined ? undefined : spanIdOf(parentId));
    const parent: SpanContext | undefined = spanId ? { traceId, spanId, traceFlags: TraceFlags.SAMPLED } : undefined;
    const context = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
    const startTime = performance.timeOrigin + told.startedMs;
    const span = this.tracer.startSpan(name, { kind, startTime, attributes }, context);
    if (told.failed) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(startTime + told.ms);
  }
}
