// Runs one service as a process: reads its configuration, starts it, waits for a signal, stops it. In: how to make the
// service. Out: an exit code. It never hides a failure: an uncaught error ends the process.
import { logLevels, tracingSettings, wireSettings } from '../config/base-settings.js';
import {
  type ConfigOf,
  describeConfig,
  readConfig,
  settings,
  type Settings,
  type Shape,
  shapeOf,
} from '../config/read-config.js';
import { wireProblems } from '../config/wire-security.js';
import { asBacktalkError, isBacktalkError } from '../errors/backtalk-error.js';
import { exportSpans, type SpanExport } from '../telemetry/export-spans.js';
import { createLogger, type Logger } from '../telemetry/logger.js';

export interface Service {
  start(): Promise<void>;
  /** May come while the service starts. */
  stop(): Promise<void>;
}

/** What a running service may ask of its process. */
export interface RunContext {
  /** Stops the service and ends the process with a failure: for errors whose retry is `stop`. */
  fail(error: unknown): void;
}

export interface RunOptions<S extends Shape | Settings> {
  readonly name: string;
  readonly config: S;
  readonly create: (config: ConfigOf<S>, context: RunContext) => Service;
}

const exitCodes = { done: 0, failed: 1, configInvalid: 2, stoppedTwice: 130 } as const;

export async function run<S extends Shape | Settings>(options: RunOptions<S>, host: Host = processHost): Promise<void> {
  const { name } = options;
  const ending = new Ending(host);
  if (host.arguments.includes('--help')) {
    host.print(
      `backtalk ${name}: settings are read from environment variables.\n\n${describeConfig({ ...shapeOf(options.config), ...tracingSettings })}`,
    );
    return host.exit(exitCodes.done);
  }
  const config = readOrComplain(options.config, host);
  const tracing = config === undefined ? undefined : readOrComplain(tracingSettings, host);
  const wire = tracing === undefined ? undefined : readOrComplain(settings(wireSettings, wireProblems), host);
  if (config === undefined || tracing === undefined || wire === undefined) return host.exit(exitCodes.configInvalid);
  const level: unknown = Reflect.get(config, 'logLevel');
  const logger = createLogger({ service: name, level: logLevels.find((known) => known === level) ?? 'info' });
  let spans: SpanExport | undefined;
  try {
    const { otlpEndpoint: endpoint } = tracing;
    if (endpoint !== undefined) spans = await exportSpans({ service: name, endpoint });
  } catch (error) {
    // A service that cannot be traced serves all the same.
    logger.error('tracing_not_started', { error: asBacktalkError(error) });
  }
  const exitCode = await runUntilStopped(options, config, logger, ending);
  await spans?.stop();
  host.exit(exitCode);
}

function readOrComplain<S extends Shape | Settings>(given: S, host: Host): ConfigOf<S> | undefined {
  try {
    return readConfig(given, host.environment);
  } catch (error) {
    if (!isBacktalkError(error, 'config_invalid')) throw error;
    host.complain(`Cannot start: the configuration is not valid.\n${error.message}`);
    return undefined;
  }
}

async function runUntilStopped<S extends Shape | Settings>(
  { create }: RunOptions<S>,
  config: ConfigOf<S>,
  logger: Logger,
  ending: Ending,
): Promise<number> {
  const fail = ending.listenForFailures(logger);
  let service: Service | undefined;
  let exitCode: number;
  try {
    service = create(config, { fail });
    // A start that waits, for the broker above all, is given up as soon as a signal comes.
    const early = await Promise.race([service.start(), ending.exitCode]);
    if (early === undefined) logger.info('service_started');
    exitCode = early ?? (await ending.exitCode);
  } catch (error) {
    logger.error('service_start_failed', { error: asBacktalkError(error) });
    exitCode = exitCodes.failed;
  }
  try {
    await service?.stop();
    logger.info('service_stopped');
    return exitCode;
  } catch (error) {
    logger.error('service_stop_failed', { error: asBacktalkError(error) });
    return exitCodes.failed;
  }
}

/** What ends the process: a signal, which is heard from the moment that this is made, or a failure. */
class Ending {
  readonly exitCode: Promise<number>;
  private end: (exitCode: number) => void = () => undefined;
  private signals = 0;

  constructor(private readonly host: Host) {
    this.exitCode = new Promise((resolve) => {
      this.end = resolve;
    });
    const onSignal = (): void => {
      this.signals += 1;
      // A second signal asks to end without waiting.
      if (this.signals > 1) host.exit(exitCodes.stoppedTwice);
      this.end(exitCodes.done);
    };
    host.on('SIGTERM', onSignal);
    host.on('SIGINT', onSignal);
  }

  /** The returned function stops the service and ends the process with a failure. */
  listenForFailures(logger: Logger): (error: unknown) => void {
    // State is unknown after an uncaught error; the log of facts makes ending at once safe.
    const onUncaught = (error: unknown): void => {
      logger.error('service_crashed', { error: asBacktalkError(error) });
      this.host.exit(exitCodes.failed);
    };
    this.host.on('uncaughtException', onUncaught);
    this.host.on('unhandledRejection', onUncaught);
    return (error) => {
      logger.error('service_failed', { error: asBacktalkError(error) });
      this.end(exitCodes.failed);
    };
  }
}

export type HostEvent = 'SIGTERM' | 'SIGINT' | 'uncaughtException' | 'unhandledRejection';

export interface Host {
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>> | undefined;
  on(event: HostEvent, listener: (reason: unknown) => void): void;
  print(text: string): void;
  complain(text: string): void;
  exit(code: number): void;
}

const processHost: Host = {
  arguments: process.argv.slice(2),
  // Undefined lets readConfig read the environment itself.
  environment: undefined,
  on: (event, listener) => {
    process.on(event, listener);
  },
  print: (text) => {
    process.stdout.write(`${text}\n`);
  },
  complain: (text) => {
    process.stderr.write(`${text}\n`);
  },
  exit: (code) => {
    process.exit(code);
  },
};
