// Where a service puts work for itself: "I must do this, maybe later, maybe again". In: an id and a few ids of data.
// Out: a job, once, as long as its record exists. It holds no text, and never leaves the service that owns it.
import { Queue, type Job } from 'bullmq';
import type { ZodType } from 'zod';
import { newTrace, type Logger, type Trace } from '../telemetry/index.js';
import { jobErrors } from './errors.js';
import { connectionOptions, logErrors, valkeyError } from './valkey.js';
import { systemClock, within, type Clock } from '../time/index.js';

export interface JobQueueOptions<D> {
  /** Letters, digits, "-" and "_": the same for queue and worker. */
  readonly name: string;
  readonly valkeyUrl: string;
  readonly schema: ZodType<D>;
  readonly logger: Logger;
  /** Tries before a job is failed for good. */
  readonly attempts?: number;
  readonly timeoutMs?: number;
  readonly clock?: Clock;
}

export interface AddOptions {
  readonly trace?: Trace;
  readonly delayMs?: number;
}

export interface FailedJob {
  readonly id: string;
  readonly data: unknown;
  /** Code of the error. */
  readonly reason: string;
  readonly attempts: number;
  readonly failedMs: number;
}

export interface JobCounts {
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  readonly failed: number;
}

export interface JobQueue<D> {
  /** The same id again changes nothing while the job's record exists. Ids hold no ":" and are not whole numbers. */
  add(id: string, data: D, options?: AddOptions): Promise<void>;
  counts(): Promise<JobCounts>;
  /** Age of the job that has waited longest: the sign that workers are alive. 0 when none waits. */
  oldestWaitingMs(): Promise<number>;
  failed(limit?: number): Promise<FailedJob[]>;
  /** Gives a failed job all its tries again. */
  retry(id: string): Promise<void>;
  remove(id: string): Promise<void>;
  close(deadlineMs?: number): Promise<void>;
}

/** What is stored: never more than the data and where it came from. */
export interface StoredJob {
  readonly data: unknown;
  readonly traceparent: string;
}

export const jobPrefix = 'backtalk';
const keptCompleted = { age: 3_600, count: 10_000 };
const keptFailed = { age: 30 * 24 * 3_600, count: 10_000 };
const jobBytesMax = 16 * 1024;

export function jobQueue<D>(options: JobQueueOptions<D>): JobQueue<D> {
  return new WorkQueue(options);
}

class WorkQueue<D> implements JobQueue<D> {
  private readonly queue: Queue<StoredJob>;
  private readonly clock: Clock;

  constructor(private readonly options: JobQueueOptions<D>) {
    this.clock = options.clock ?? systemClock;
    const { name, valkeyUrl, timeoutMs = 2_000, attempts = 8 } = options;
    this.queue = new Queue<StoredJob>(name, {
      prefix: jobPrefix,
      // It is asked once, and an answer that comes too late would fail every question of this process's life.
      skipVersionCheck: true,
      connection: connectionOptions({ url: valkeyUrl, name: `queue ${name}`, commandTimeoutMs: timeoutMs }, 'asker'),
      defaultJobOptions: {
        attempts,
        // The worker decides how long.
        backoff: { type: 'worker' },
        removeOnComplete: keptCompleted,
        removeOnFail: keptFailed,
        sizeLimit: jobBytesMax,
        stackTraceLimit: 0,
      },
    });
    logErrors(this.queue, { name, logger: options.logger });
  }

  async add(id: string, data: D, { trace = newTrace(), delayMs = 0 }: AddOptions = {}): Promise<void> {
    const { name, schema } = this.options;
    if (!isJobId(id)) throw jobErrors.jobInvalid({ queue: name, reason: 'its id holds ":" or is a whole number' });
    const checked = schema.safeParse(data);
    if (!checked.success)
      throw jobErrors.jobInvalid({ queue: name, reason: 'its data has another shape' }, checked.error);
    const stored = { data: checked.data, traceparent: trace.traceparent };
    await this.ask('add a job', () => this.queue.add(name, stored, { jobId: id, delay: delayMs }));
  }

  async counts(): Promise<JobCounts> {
    const {
      waiting = 0,
      active = 0,
      delayed = 0,
      failed = 0,
    } = await this.ask('count jobs', () => this.queue.getJobCounts('waiting', 'active', 'delayed', 'failed'));
    return { waiting, active, delayed, failed };
  }

  async oldestWaitingMs(): Promise<number> {
    const [oldest] = await this.ask('look at waiting jobs', () => this.queue.getJobs(['waiting'], 0, 0, true));
    return oldest === undefined ? 0 : Math.max(0, this.clock.now() - oldest.timestamp);
  }

  async failed(limit = 1_000): Promise<FailedJob[]> {
    const jobs = await this.ask('list failed jobs', () => this.queue.getFailed(0, limit - 1));
    return jobs.map((job) => ({
      id: job.id ?? '',
      data: job.data.data,
      reason: job.failedReason,
      attempts: job.attemptsMade,
      failedMs: job.finishedOn ?? 0,
    }));
  }

  async retry(id: string): Promise<void> {
    const job = await this.find(id);
    await this.ask('retry a job', () => job.retry('failed', { resetAttemptsMade: true }));
  }

  async remove(id: string): Promise<void> {
    await this.ask('remove a job', () => this.queue.remove(id));
  }

  async close(deadlineMs = 2_000): Promise<void> {
    await within(this.clock, deadlineMs, this.queue.close());
    await within(this.clock, 1_000, this.queue.disconnect());
  }

  private async find(id: string): Promise<Job<StoredJob>> {
    const job = await this.ask('look for a job', () => this.queue.getJob(id));
    if (job === undefined) throw jobErrors.jobInvalid({ queue: this.options.name, reason: 'it is not there' });
    return job;
  }

  /** The first connection is waited for no longer than any answer. */
  private async ask<T>(doing: string, question: () => Promise<T>): Promise<T> {
    const asked = question().then((value) => ({ value }));
    try {
      const answer = await within(this.clock, this.options.timeoutMs ?? 2_000, asked);
      if (answer === undefined) throw jobErrors.valkeyUnavailable({ doing });
      return answer.value;
    } catch (error) {
      throw valkeyError(error, doing);
    }
  }
}

function isJobId(id: string): boolean {
  return id !== '' && !id.includes(':') && !/^\d+$/.test(id);
}
