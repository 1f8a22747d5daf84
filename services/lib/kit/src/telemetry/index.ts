export { systemClock, type Clock } from './clock.js';
export { Health, type HealthOptions, type ReadyCheck } from './health.js';
export { createLogger, type Logger, type LoggerOptions } from './logger.js';
export { Metrics } from './metrics.js';
export { childTrace, newTrace, traceFrom, type Trace } from './trace.js';
