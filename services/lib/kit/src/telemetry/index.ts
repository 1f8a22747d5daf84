export { Health, type HealthOptions, type ReadyCheck } from './health.js';
export { createLogger, type Logger, type LoggerOptions } from './logger.js';
export { Metrics } from './metrics.js';
export { exportSpans, type SpanExport } from './export-spans.js';
export {
  collectSpans,
  idsOf,
  inSpan,
  isTracing,
  startSpan,
  type Span,
  type SpanKind,
  type SpanOptions,
} from './spans.js';
export { childTrace, unfollowedTrace, newTrace, traceFrom, type Trace } from './trace.js';
