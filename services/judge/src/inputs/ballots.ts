// Has votes cast, each as a job of its own, and counts them. In: a turn to judge. Out: its votes, all of them, valid or
// null. Jobs hold ids only; what they are about stays in the memory of the process that has the turn in hand, and so do
// the votes. A job that nobody waits for any more does nothing. When the queue loses its jobs they are queued again.
import { asBacktalkError, type Clock, type JobInHand, type JobQueue, type Trace } from '@backtalk/kit';
import { z } from 'zod';
import type { Material } from '../domain/material.js';
import type { CastVote, NullReason } from '../domain/verdict.js';
import { judgeErrors } from '../errors.js';
import type { JudgeEvents } from '../events.js';
import type { BallotBox } from '../outputs/ballot-box.js';
import { seedOf } from '../domain/seeds.js';

export const voteJob = z.object({
  ballot: z.string(),
  turn: z.string(),
  tenant: z.string(),
  user: z.string(),
  vote: z.number(),
});
export type VoteJob = z.infer<typeof voteJob>;

/** The first, and two more. */
export const voteTriesMax = 3;

export interface BallotsOptions {
  readonly queue: JobQueue<VoteJob>;
  readonly box: BallotBox;
  readonly votes: number;
  readonly checkEveryMs: number;
  readonly clock: Clock;
  readonly events: JudgeEvents;
}

export interface Delivered {
  readonly deliveries: number;
  readonly signal: AbortSignal;
  readonly trace: Trace;
}

interface Ballot {
  readonly id: string;
  readonly material: Material;
  readonly votes: (CastVote | undefined)[];
  readonly running: Set<number>;
  readonly trace: Trace;
  readonly done: (votes: readonly CastVote[]) => void;
  /** False until all jobs are in the queue. */
  queued: boolean;
  round: number;
}

export class Ballots {
  /** Bounded by the turns in hand. */
  private readonly open = new Map<string, Ballot>();
  private serial = 0;
  private isStopped = false;
  private cancelCheck: () => void = () => undefined;

  constructor(private readonly options: BallotsOptions) {}

  start(): void {
    this.cancelCheck = this.options.clock.timer(this.options.checkEveryMs, () => {
      this.check()
        .catch((error: unknown) => {
          this.options.events.queueNotChecked(error);
        })
        .finally(() => {
          if (!this.isStopped) this.start();
        });
    });
  }

  stop(): void {
    this.isStopped = true;
    this.cancelCheck();
  }

  async castAll(material: Material, delivered: Delivered): Promise<readonly CastVote[]> {
    const { votes, events } = this.options;
    if (delivered.signal.aborted) throw judgeErrors.votesLeft();
    this.serial += 1;
    const id = `${material.place.turn}-${delivered.deliveries}-${this.serial}`;
    // The signal lives as long as the process: what listens to it holds on to the whole conversation.
    const ended = new AbortController();
    try {
      return await new Promise<readonly CastVote[]>((resolve, reject) => {
        const ballot: Ballot = {
          id,
          material,
          trace: delivered.trace,
          done: resolve,
          queued: false,
          round: 0,
          votes: Array.from({ length: votes }, () => undefined),
          running: new Set(),
        };
        this.open.set(id, ballot);
        events.turnsInHand(this.open.size);
        delivered.signal.addEventListener('abort', () => reject(judgeErrors.votesLeft()), { signal: ended.signal });
        this.enqueue(ballot).then(() => {
          ballot.queued = true;
        }, reject);
      });
    } finally {
      ended.abort();
      this.open.delete(id);
      events.turnsInHand(this.open.size);
    }
  }

  /** Works off one job. It throws only where the queue shall try again. */
  async handle({ data, attempt, signal }: JobInHand<VoteJob>): Promise<void> {
    const ballot = this.open.get(data.ballot);
    const { vote } = data;
    if (ballot === undefined || ballot.votes[vote] !== undefined || ballot.running.has(vote)) {
      this.options.events.voteDropped();
      return;
    }
    ballot.running.add(vote);
    try {
      this.take(ballot, vote, await this.options.box.cast(ballot.material, vote, signal));
    } catch (error) {
      const failure = asBacktalkError(error);
      this.options.events.voteFailed(failure, attempt);
      // What only has to wait is not counted as a try.
      if (failure.status === 503 || attempt < voteTriesMax || signal.aborted) throw failure;
      const reason: NullReason = failure.code === 'vote_timed_out' ? 'timeout' : 'engine';
      this.take(ballot, vote, { valid: false, reason, seed: seedOf(data.turn, vote) });
    } finally {
      ballot.running.delete(vote);
    }
  }

  private take(ballot: Ballot, vote: number, cast: CastVote): void {
    ballot.votes[vote] = cast;
    const counted = ballot.votes.filter((one) => one !== undefined);
    if (counted.length === ballot.votes.length) ballot.done(counted);
  }

  private async enqueue(ballot: Ballot): Promise<void> {
    const { queue } = this.options;
    const { turn, tenant, user } = ballot.material.place;
    const open = missing(ballot).filter((vote) => !ballot.running.has(vote));
    await Promise.all(
      open.map((vote) =>
        queue.add(
          `${ballot.id}-${ballot.round}-v${vote}`,
          { ballot: ballot.id, turn, tenant, user, vote },
          { trace: ballot.trace },
        ),
      ),
    );
  }

  /** Every missing vote has a job; where there are fewer jobs than missing votes, jobs have vanished. */
  private async check(): Promise<void> {
    const before = [...this.open.values()].filter(({ queued }) => queued);
    if (before.length === 0) {
      this.options.events.votesWaiting(0, 0);
      return;
    }
    const [{ waiting, active, delayed }, oldestMs] = await Promise.all([
      this.options.queue.counts(),
      this.options.queue.oldestWaitingMs(),
    ]);
    this.options.events.votesWaiting(waiting, oldestMs);
    const open = before.filter(({ id }) => this.open.has(id));
    const expected = open.reduce((sum, ballot) => sum + missing(ballot).length, 0);
    if (waiting + active + delayed >= expected) return;
    this.options.events.votesRequeued(expected);
    for (const ballot of open) {
      ballot.round += 1;
      await this.enqueue(ballot);
    }
  }
}

function missing({ votes }: Ballot): number[] {
  return votes.flatMap((cast, vote) => (cast === undefined ? [vote] : []));
}
