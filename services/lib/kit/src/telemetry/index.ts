export { exportSpans, type SpanExport } from './export-spans.js';
export { Health, type HealthOptions, type ReadyCheck } from './health.js';
export { createLogger, type Logger, type LoggerOptions } from './logger.js';
export { Metrics } from './metrics.js';
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
export { childTrace, newTrace, traceFrom, unfollowedTrace, type Trace } from './trace.js';
