// Sends spans to a collector over OTLP/HTTP. In: where it listens. Out: spans, a few at a time; they are dropped when it does
// not keep up, and never hold anything back. The libraries are loaded only here, so that a process without tracing does not pay for them.
import type { SpanContext, TraceFlags } from '@opentelemetry/api';
import { collectSpans, type SpanKind, type SpanOptions } from './spans.js';
import type { Trace } from './trace.js';

interface ExportOptions {
  readonly service: string;
  /** Base address; `/v1/traces` is added. */
  readonly endpoint: string;
}

export interface SpanExport {
  /** Sends what is left, within a bound. */
  stop(): Promise<void>;
}

/** A span joins this many traces at most. */
const linksMax = 64;
const sendEveryMs = 1_000;
const waitingMax = 2_048;
const stopWithinMs = 2_000;

export async function exportSpans({ service, endpoint }: ExportOptions): Promise<SpanExport> {
  const [api, sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ]);
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.endsWith('/') ? endpoint.slice(0, -1) : endpoint}/v1/traces`,
  });
  const processor = new sdk.BatchSpanProcessor({
    exporter,
    scheduledDelayMillis: sendEveryMs,
    maxQueueSize: waitingMax,
  });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({ 'service.name': `backtalk-${service}`, 'service.namespace': 'backtalk' }),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.AlwaysOnSampler() }),
    spanLimits: { linkCountLimit: linksMax },
    spanProcessors: [processor],
  });
  const tracer = provider.getTracer('backtalk');
  const kinds: Readonly<Record<SpanKind, number>> = {
    internal: api.SpanKind.INTERNAL,
    server: api.SpanKind.SERVER,
    client: api.SpanKind.CLIENT,
    producer: api.SpanKind.PRODUCER,
    consumer: api.SpanKind.CONSUMER,
  };
  const stopCollecting = collectSpans((name, { kind, parent, links = [], attributes = {} }: SpanOptions) => {
    const context = api.trace.setSpanContext(api.ROOT_CONTEXT, contextOf(parent));
    const joined = links.slice(0, linksMax).map((link) => ({ context: contextOf(link) }));
    const span = tracer.startSpan(name, { kind: kinds[kind], attributes, links: joined }, context);
    const { traceId, spanId, traceFlags } = span.spanContext();
    const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
    return {
      trace: { traceId, traceparent },
      end: (failure) => {
        if (failure !== undefined) span.setStatus({ code: api.SpanStatusCode.ERROR, message: failure });
        span.end();
      },
    };
  });
  return {
    stop: async () => {
      stopCollecting();
      // Spans that cannot be delivered at the end are lost, as at any other time.
      await provider.forceFlush({ timeoutMillis: stopWithinMs }).catch(() => undefined);
      await provider.shutdown().catch(() => undefined);
    },
  };
}

function contextOf({ traceparent }: Trace): SpanContext {
  const [, traceId = '', spanId = '', flags = '00'] = traceparent.split('-');
  const traceFlags: TraceFlags = Number.parseInt(flags, 16);
  return { traceId, spanId, traceFlags, isRemote: true };
}
