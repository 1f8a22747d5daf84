// What every command is given: how to print, where the machine is, and which signal ends it.
import type { Connection } from './connection.js';
import type { Output } from './output.js';

export interface CommandContext {
  readonly output: Output;
  readonly connection: Connection;
  readonly apiKey: string;
  /** Folder of the virtual environment, for the scorer. */
  readonly venv: string;
  /** Ctrl-C. */
  readonly signal: AbortSignal;
}
