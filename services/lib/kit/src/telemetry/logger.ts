// Structured log lines on standard output. In: an event's name and its fields. Out: one line of JSON.
// Fields hold ids, counts, codes and errors, never what users or models wrote.
import { pino, stdSerializers, type DestinationStream, type Logger as PinoLogger } from 'pino';
import type { LogLevel } from '../config/base-settings.js';
import { BacktalkError } from '../errors/backtalk-error.js';

export interface Logger {
  debug(event: string, fields?: object): void;
  info(event: string, fields?: object): void;
  warn(event: string, fields?: object): void;
  error(event: string, fields?: object): void;
  child(fields: object): Logger;
}

export interface LoggerOptions {
  readonly service: string;
  readonly level: LogLevel;
  /** Where lines go; standard output by default. */
  readonly destination?: DestinationStream;
}

export function createLogger({ service, level, destination }: LoggerOptions): Logger {
  const options = {
    level,
    base: { service },
    messageKey: 'event',
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { error: serializeError },
  };
  // Lines are written at once, so that the last one before a crash is not lost.
  return wrap(pino(options, destination ?? pino.destination({ dest: 1, sync: true })));
}

function wrap(lines: PinoLogger): Logger {
  return {
    debug: (event, fields = {}) => lines.debug(fields, event),
    info: (event, fields = {}) => lines.info(fields, event),
    warn: (event, fields = {}) => lines.warn(fields, event),
    error: (event, fields = {}) => lines.error(fields, event),
    child: (fields) => wrap(lines.child(fields)),
  };
}

function serializeError(error: unknown): unknown {
  if (error instanceof BacktalkError) {
    const { code, retry, message, stack, cause } = error;
    return { code, retry, message, stack, ...(cause === undefined ? {} : { cause: serializeError(cause) }) };
  }
  return error instanceof Error ? stdSerializers.err(error) : { message: String(error) };
}
