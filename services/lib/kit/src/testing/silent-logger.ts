// A logger that says nothing, for tests that look at something else.
import type { Logger } from '../telemetry/logger.js';

export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};
