// Structured log lines on standard output. In: an event's name and its fields. Out: one line of JSON.
// Fields hold ids, counts, codes and errors, never what users or models wrote.
import { pino, type DestinationStream } from 'pino';
import type { LogLevel } from '../config/base-settings.js';
import type { Clock } from '../time/clock.js';
import { writtenError } from './written-error.js';

export interface Logger {
  debug(event: string, fields?: object): void;
  info(event: string, fields?: object): void;
  warn(event: string, fields?: object): void;
  error(event: string, fields?: object): void;
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
    serializers: { error: writtenError, err: writtenError },
  };
  // Lines are written at once, so that the last one before a crash is not lost.
  const lines = pino(options, destination ?? pino.destination({ dest: 1, sync: true }));
  return {
    debug: (event, fields = {}) => lines.debug(fields, event),
    info: (event, fields = {}) => lines.info(fields, event),
    warn: (event, fields = {}) => lines.warn(fields, event),
    error: (event, fields = {}) => lines.error(fields, event),
  };
}

const againMs = 60_000;

/** What lasts is said at once, and then rarely. */
export class Said {
  private readonly lastMs = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  isDue(what: string): boolean {
    const now = this.clock.now();
    const last = this.lastMs.get(what);
    if (last !== undefined && Math.abs(now - last) < againMs) return false;
    this.lastMs.set(what, now);
    return true;
  }
}
