// The queue of votes, one for all judges. In: what is to be judged, as ids. Out: the votes on it, each cast by any judge,
// and the judgement, made by the judge that is free when the last vote is there. It holds no text: a worker reads what it
// votes on from the log. Records have the shape of this release; another shape takes another name of the queue.
import { asBacktalkError, backOffMs, inSpan } from '@backtalk/kit';
import { connectionOptions, connectValkey, logValkeyErrors } from '@backtalk/kit/valkey';
import { traceFrom, within } from '@backtalk/kit';
import { valkeyError, valkeyErrors } from '@backtalk/kit/valkey';
import type { BackOff, ServiceContext, Trace } from '@backtalk/kit';
import { DelayedError, FlowProducer, Queue, QueueEvents, UnrecoverableError, WaitingError, Worker } from 'bullmq';
import type { Job } from 'bullmq';
import type { JudgeConfig } from '../config.js';
import type { CastVote } from '../domain/verdict.js';
import { judgeErrors } from '../errors.js';
import type { JudgeEvents } from '../events.js';
import { EngineDeaths } from './engine-deaths.js';

/** One turn to judge, by ids. */
export interface Judgement {
  /**
   * The first judgement of a continued turn, that of the best turn of a closed session, that of a planted turn, which is in no log, or one that
   * an operator asks for beside the first.
   */
  readonly kind: 'continued' | 'closed' | 'planted' | 'again';
  readonly tenant: string;
  readonly user: string;
  readonly policy: string;
  readonly turn: string;
  /** Turns after it whose next states are read with its own, oldest first. */
  readonly later: readonly string[];
  /** Of `again`: the asking. */
  readonly asked?: string;
}

/** A vote as it lies in the queue: its hint is sealed. */
export interface QueuedVote {
  readonly vote: number;
  readonly model: string;
  readonly cast: CastVote;
}

export interface Attempt {
  /** 1 at the first try. */
  readonly number: number;
  readonly isLast: boolean;
  /** Aborted when the judge stops and the vote has used up the time it had left. */
  readonly signal: AbortSignal;
}

export interface VoteHandlers {
  readonly cast: (judgement: Judgement, vote: number, attempt: Attempt) => Promise<QueuedVote>;
  readonly finish: (judgement: Judgement, votes: readonly QueuedVote[], trace: Trace) => Promise<void>;
}

interface JobData {
  readonly judgement: Judgement;
  readonly traceparent: string;
  /** -1 in the job that waits for the votes. */
  readonly vote: number;
}

const votesName = 'judge-votes';
const judgementsName = 'judge-judgements';
const prefix = 'backtalk';
const answerWithinMs = 2_000;
/** The first, and two more. */
const voteTriesMax = 3;
const attempts = { attempts: voteTriesMax, backoff: { type: 'worker' }, stackTraceLimit: 0 };
/** A finished judgement is remembered for facts that are delivered again; its votes stand in it. */
const kept = { age: 3_600, count: 10_000 };
const oldestOf = 32;
/** After all that has no priority. */
const lastOfAll = { priority: 1 };

export class VoteQueue {
  readonly deaths: EngineDeaths;
  private readonly client;
  private readonly flows;
  private readonly votes;
  private readonly judgements;
  private readonly finished;
  private readonly workers: Worker[] = [];
  private readonly stopping = new AbortController();
  /** Turns in flight in this process, each with what ends its pause. */
  private readonly waiting = new Map<string, () => void>();
  private cancelMeasure: () => void = () => undefined;

  constructor(
    private readonly context: Pick<ServiceContext<JudgeConfig>, 'config' | 'clock' | 'logger' | 'wire' | 'fail'>,
    private readonly backOff: BackOff,
    private readonly events: JudgeEvents,
  ) {
    const { config, logger } = context;
    const { tls } = context.wire;
    const url = config.valkeyUrl;
    this.client = connectValkey({ url, tls, name: 'judge', logger, commandTimeoutMs: answerWithinMs });
    // The version is asked once, and an answer that comes too late would fail everything that this process asks later.
    const options = { prefix, connection: this.client, skipVersionCheck: true };
    this.flows = new FlowProducer(options);
    this.votes = new Queue<JobData>(votesName, options);
    this.judgements = new Queue<JobData>(judgementsName, options);
    this.deaths = new EngineDeaths({
      setOnce: async (key, ms) =>
        (await this.ask('note an engine', () => this.client.set(key, '1', 'PX', ms, 'NX'))) !== null,
      count: async (key) => Number(await this.ask('count engines', () => this.client.get(key))),
      increase: (key, ms) =>
        this.ask('count engines', async () => {
          const count = await this.client.incr(key);
          await this.client.pexpire(key, ms);
          return count;
        }),
    });
    const connection = connectionOptions({ url, tls, name: 'judge events' }, 'waiter');
    this.finished = new QueueEvents(judgementsName, { ...options, connection, blockingTimeout: 5_000 });
    for (const source of [this.flows, this.votes, this.judgements, this.finished])
      logValkeyErrors(source, { name: 'judge queue', logger });
  }

  async start({ cast, finish }: VoteHandlers): Promise<void> {
    for (const event of ['completed', 'failed'] as const)
      this.finished.on(event, ({ jobId }: { jobId: string }) => this.waiting.get(jobId)?.());
    const { voteConcurrency, turnsInFlight } = this.context.config;
    await Promise.all([
      this.work(votesName, voteConcurrency, async (job) => {
        const number = job.attemptsMade + 1;
        const attempt = { number, isLast: number >= voteTriesMax, signal: this.stopping.signal };
        return cast(job.data.judgement, job.data.vote, attempt);
      }),
      this.work(judgementsName, turnsInFlight, async (job, trace) => {
        const votes = Object.values(await job.getChildrenValues<QueuedVote>());
        votes.sort((a, b) => a.vote - b.vote);
        await finish(job.data.judgement, votes, trace);
      }),
    ]);
    this.measureLater();
  }

  /** Lets votes end until the deadline; the others go to another judge at once. */
  async stop(deadlineMs: number): Promise<void> {
    const { clock } = this.context;
    this.cancelMeasure();
    const closed = Promise.all(this.workers.map((worker) => worker.close())).then(() => true);
    if ((await within(clock, deadlineMs, closed)) !== true) {
      this.stopping.abort();
      await within(clock, 1_000, closed);
    }
    await within(clock, 1_000, Promise.all([...this.workers, this.finished].map((one) => one.disconnect())));
    this.client.disconnect();
  }

  /**
   * Resolves when the votes are cast and the judgement is made, here or by another judge. Jobs that vanished from the queue
   * are added again; while their records exist, they are added once.
   */
  async decide(judgement: Judgement, trace: Trace, signal: AbortSignal): Promise<void> {
    const id = idOf(judgement);
    const { clock, config } = this.context;
    try {
      for (let looks = 0; ; looks += 1) {
        if (signal.aborted) throw judgeErrors.votesLeft();
        const ended = new AbortController();
        this.waiting.set(id, () => ended.abort());
        this.events.turnsInFlight(this.waiting.size);
        const state = await this.ask('look for a judgement', () => this.judgements.getJobState(id));
        if (state === 'completed') return;
        if (state === 'failed') {
          await this.forget(judgement);
          // The fact is tried again, and is given up when that is no use.
          if (looks > 0) throw judgeErrors.judgementMissing();
        }
        if (state === 'failed' || state === 'unknown') await this.add(id, judgement, trace);
        if (looks > 0 && state === 'unknown') this.events.votesRequeued(config.votes);
        const pause = AbortSignal.any([signal, ended.signal]);
        await clock.sleep(config.queueCheckMs, pause).catch(() => undefined);
      }
    } finally {
      this.waiting.delete(id);
      this.events.turnsInFlight(this.waiting.size);
    }
  }

  /** Adds its votes, and waits for none of them. */
  async plant(judgement: Judgement, trace: Trace): Promise<void> {
    await this.add(idOf(judgement), judgement, trace);
  }

  /** The judgement may be made anew. */
  async forget(judgement: Judgement): Promise<void> {
    await this.ask('remove a judgement', () => this.judgements.remove(idOf(judgement), { removeChildren: true }));
  }

  private async add(id: string, judgement: Judgement, { traceparent }: Trace): Promise<void> {
    const order = judgement.kind === 'again' ? lastOfAll : {};
    const children = Array.from({ length: this.context.config.votes }, (_, vote) => ({
      name: votesName,
      queueName: votesName,
      prefix,
      data: { judgement, traceparent, vote },
      opts: {
        ...attempts,
        ...order,
        jobId: `${id}-v${vote}`,
        failParentOnFailure: true,
        removeOnComplete: true,
        removeOnFail: true,
      },
    }));
    const opts = { ...attempts, ...order, jobId: id, removeOnComplete: kept, removeOnFail: kept };
    const data = { judgement, traceparent, vote: -1 };
    const flow = { name: judgementsName, queueName: judgementsName, prefix, data, opts, children };
    await this.ask('add votes', () => this.flows.add(flow));
  }

  private async work<R>(
    name: string,
    concurrency: number,
    handle: (job: Job<JobData>, trace: Trace) => Promise<R>,
  ): Promise<void> {
    const { config, clock, logger, fail } = this.context;
    const process = (job: Job<JobData>, token?: string) =>
      inSpan(
        `job ${name}`,
        {
          kind: 'consumer',
          parent: traceFrom(job.data.traceparent),
          attributes: { 'backtalk.attempt': job.attemptsMade + 1 },
        },
        async (trace) => {
          const result = await handle(job, trace).catch((error: unknown) => this.failed(name, job, token, error));
          this.events.jobHandled(name, 'handled');
          return result;
        },
      );
    const worker = new Worker<JobData, R>(name, process, {
      autorun: false,
      prefix,
      connection: connectionOptions(
        { url: config.valkeyUrl, tls: this.context.wire.tls, name: `worker ${name}` },
        'waiter',
      ),
      concurrency,
      // None of its own, but without one a worker does not heed a rest that another has asked for.
      limiter: { max: Number.MAX_SAFE_INTEGER, duration: 1_000 },
      lockDuration: config.ackWaitMs,
      stalledInterval: config.ackWaitMs,
      // The job of a process that died is tried again; its attempts bound it.
      maxStalledCount: 8,
      runRetryDelay: 1_000,
      settings: { backoffStrategy: (tries) => backOffMs(tries, this.backOff) },
    });
    this.workers.push(worker);
    logValkeyErrors(worker, { name: `worker ${name}`, logger });
    // It runs until it is closed; losses of the connection are mended inside.
    worker.run().catch(fail);
    await within(clock, 5_000, worker.waitUntilReady());
  }

  /** Valkey gets the code of the error only: messages may quote what must not be kept. */
  private async failed(queue: string, job: Job<JobData>, token: string | undefined, thrown: unknown): Promise<never> {
    const { logger, clock, fail } = this.context;
    const error = asBacktalkError(thrown);
    const isLast = job.attemptsMade + 1 >= voteTriesMax;
    const waits = error.retry === 'later' && error.status === 503;
    const outcome = this.stopping.signal.aborted || waits ? 'waited' : isLast ? 'dead' : 'retried';
    this.events.jobHandled(queue, outcome);
    logger[outcome === 'dead' ? 'error' : 'warn']('job_failed', { queue, job: job.id, outcome, error });
    if (error.retry === 'stop') fail(error);
    if (this.stopping.signal.aborted) {
      await job.moveToWait(token);
      throw new WaitingError();
    }
    if (error.code === 'judge_engine_limited') {
      // For all judges: they ask the same engines, with the same key.
      await this.votes.rateLimit(Math.ceil(Number(error.detail['waitMs'])));
      throw Worker.RateLimitError();
    }
    if (waits) {
      // What the job needs cannot be reached, for which the job is not to blame: the try is not counted.
      await job.moveToDelayed(clock.now() + backOffMs(job.attemptsStarted, this.backOff), token);
      throw new DelayedError();
    }
    if (error.retry === 'never') throw new UnrecoverableError(error.code);
    throw judgeErrors.jobFailed({ reason: error.code });
  }

  private measureLater(): void {
    this.cancelMeasure = this.context.clock.timer(this.context.config.queueCheckMs, () => {
      this.measure()
        .catch((error: unknown) => this.events.queueNotMeasured(error))
        .finally(() => {
          if (!this.stopping.signal.aborted) this.measureLater();
        });
    });
  }

  /** The same on every judge, for the queue is theirs together. */
  private async measure(): Promise<void> {
    const [{ waiting = 0, delayed = 0 }, oldest] = await this.ask('measure the queue', () =>
      Promise.all([
        this.votes.getJobCounts('waiting', 'delayed'),
        this.votes.getJobs(['waiting', 'delayed'], 0, oldestOf, true),
      ]),
    );
    const now = this.context.clock.now();
    // A job may be gone between the list and its reading.
    const ages = oldest.map((job?: Job<JobData>) => now - (job?.timestamp ?? now));
    this.events.votesWaiting(waiting + delayed, Math.max(0, ...ages));
  }

  /** The first connection is waited for no longer than any answer. */
  private async ask<T>(doing: string, request: () => Promise<T>): Promise<T> {
    try {
      const asked = request().then((value) => ({ value }));
      const answer = await within(this.context.clock, answerWithinMs, asked);
      if (answer === undefined) throw valkeyErrors.valkeyUnavailable({ doing });
      return answer.value;
    } catch (error) {
      throw valkeyError(error, doing);
    }
  }
}

function idOf({ turn, kind, asked }: Judgement): string {
  return [turn, kind, ...(asked === undefined ? [] : [asked])].join('-');
}
