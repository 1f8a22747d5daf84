// Loggers for tests that look at something else: one that says nothing, and one whose warnings stand in the words of a failure.
import type { Logger } from '../telemetry/logger.js';

export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

const keptMax = 40;

/** Keeps the last warnings and errors; where something is waited for, they are a part of `what`. */
export class KeptWarnings implements Logger {
  private readonly lines: string[] = [];
  readonly debug = (): void => undefined;
  readonly info = (): void => undefined;

  warn(event: string, fields: object = {}): void {
    const plain = (_: string, value: unknown): unknown => (value instanceof Error ? value.message : value);
    this.lines.push(`${event} ${JSON.stringify(fields, plain)}`);
    if (this.lines.length > keptMax) this.lines.shift();
  }

  error(event: string, fields?: object): void {
    this.warn(event, fields);
  }

  get text(): string {
    return this.lines.length === 0 ? 'without a warning' : `after the warnings\n${this.lines.join('\n')}\n`;
  }
}
