// Works off the jobs of one queue. In: a handler. Out: every job tried until it is done, has failed for good, or is not
// worth trying. What becomes of a failed job follows from the error, as it does for facts.
import { DelayedError, UnrecoverableError, Worker, type Job } from 'bullmq';
import type { ZodType } from 'zod';
import { asBacktalkError, type BacktalkError } from '../errors/index.js';
import { backOffMs, systemClock, within, type BackOff, type Clock } from '../time/index.js';
import { inSpan, traceFrom, type Logger, type Metrics, type Trace } from '../telemetry/index.js';
import { jobErrors } from './errors.js';
import { jobPrefix, type StoredJob } from './job-queue.js';
import { connectionOptions, logErrors } from './valkey.js';

export interface JobInHand<D> {
  readonly id: string;
  readonly data: D;
  readonly trace: Trace;
  /** 1 at the first try. */
  readonly attempt: number;
  /** Aborted when the worker stops and the job has used up the time it had left. */
  readonly signal: AbortSignal;
}

export interface JobWorkerOptions<D> {
  readonly name: string;
  readonly valkeyUrl: string;
  readonly schema: ZodType<D>;
  readonly handler: (job: JobInHand<D>) => Promise<void>;
  readonly concurrency: number;
  /** After this long without a sign of life from a process, its jobs go to another. */
  readonly lockMs?: number;
  readonly backOff?: BackOff;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock?: Clock;
  /** Told of errors that should end the service. */
  readonly onFatal?: (error: BacktalkError) => void;
}

export interface JobWorker {
  start(): Promise<void>;
  /** Lets jobs end until the deadline; what is left goes to another worker when its lock runs out. */
  stop(deadlineMs?: number): Promise<void>;
}

export function jobWorker<D>(options: JobWorkerOptions<D>): JobWorker {
  return new QueueWorker(options);
}

class QueueWorker<D> implements JobWorker {
  private readonly clock: Clock;
  private readonly aborting = new AbortController();
  private readonly worker: Worker<StoredJob>;
  private readonly handled;

  constructor(private readonly options: JobWorkerOptions<D>) {
    this.clock = options.clock ?? systemClock;
    this.handled = options.metrics.counter('jobs_handled_total', 'Tries of jobs, by what became of them.', [
      'queue',
      'outcome',
    ]);
    const { name, valkeyUrl, concurrency, lockMs = 30_000 } = options;
    this.worker = new Worker<StoredJob>(name, (job, token) => this.handle(job, token), {
      autorun: false,
      prefix: jobPrefix,
      connection: connectionOptions({ url: valkeyUrl, name: `worker ${name}` }, 'waiter'),
      concurrency,
      lockDuration: lockMs,
      stalledInterval: lockMs,
      // A job whose process died is tried again; its attempts bound it.
      maxStalledCount: 8,
      runRetryDelay: 1_000,
      settings: { backoffStrategy: (tries) => this.backOffMs(tries) },
    });
    logErrors(this.worker, { name, logger: options.logger });
  }

  async start(): Promise<void> {
    // It runs until it is closed; losses of the connection are mended inside.
    this.worker.run().catch((error: unknown) => {
      this.fatal(asBacktalkError(error));
    });
    await within(this.clock, 5_000, this.worker.waitUntilReady());
  }

  async stop(deadlineMs = 10_000): Promise<void> {
    const closed = this.worker.close().then(() => true);
    if ((await within(this.clock, deadlineMs, closed)) === true) return;
    this.aborting.abort();
    await within(this.clock, 1_000, closed);
    await within(this.clock, 1_000, this.worker.disconnect());
  }

  private async handle(job: Job<StoredJob>, token: string | undefined): Promise<void> {
    const { handler, name } = this.options;
    try {
      const data = this.read(job);
      const attempt = job.attemptsMade + 1;
      const parent = traceFrom(job.data.traceparent);
      const attributes = { 'backtalk.attempt': attempt };
      await inSpan(`job ${name}`, { kind: 'consumer', parent, attributes }, (trace) =>
        handler({ id: job.id ?? '', data, trace, attempt, signal: this.aborting.signal }),
      );
      this.handled.inc({ queue: name, outcome: 'handled' });
    } catch (error) {
      await this.failed(job, token, asBacktalkError(error));
    }
  }

  private read(job: Job<StoredJob>): D {
    const read = this.options.schema.safeParse(job.data.data);
    if (read.success) return read.data;
    throw jobErrors.jobInvalid({ queue: this.options.name, reason: 'its data has another shape' }, read.error);
  }

  /** Valkey is told the code of the error only: messages may quote what must not be kept. */
  private async failed(job: Job<StoredJob>, token: string | undefined, error: BacktalkError): Promise<never> {
    const { name, logger } = this.options;
    const last = job.attemptsMade + 1 >= (job.opts.attempts ?? 1);
    const outage = error.retry === 'later' && error.status === 503;
    const dead = !outage && (last || error.retry !== 'later');
    this.handled.inc({ queue: name, outcome: outage ? 'waited' : dead ? 'dead' : 'retried' });
    logger[dead ? 'error' : 'warn']('job_failed', { queue: name, job: job.id, attempt: job.attemptsMade + 1, error });
    if (error.retry === 'stop') this.fatal(error);
    if (outage) {
      // What the job needs is away, for which the job is not to blame: the try is not counted.
      await job.moveToDelayed(this.clock.now() + this.backOffMs(job.attemptsStarted), token);
      throw new DelayedError();
    }
    if (error.retry === 'never') throw new UnrecoverableError(error.code);
    throw jobErrors.jobFailed({ reason: error.code });
  }

  private backOffMs(tries: number): number {
    return backOffMs(tries, this.options.backOff ?? { firstMs: 500, mostMs: 30_000 });
  }

  private fatal(error: BacktalkError): void {
    if (this.options.onFatal !== undefined) return this.options.onFatal(error);
    // Nobody catches it, so the process ends with the error in its log.
    queueMicrotask(() => {
      throw error;
    });
  }
}
