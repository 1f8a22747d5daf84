// Ends sessions: says so once, with the turns that were continued in it. A client ends one by itself; every so often those
// are closed in which nothing was said for too long, by the broker's clock.
import { asBacktalkError, newTrace, type Clock, type Trace } from '@backtalk/kit';
import { SessionClosed_Reason, type Outcome } from '@backtalk/proto/facts';
import type { Moment } from '../outputs/collector-log.js';
import type { AnswersTaken, LinkParts } from './link-turn.js';

/** Runs one piece of work at a time, each on an index that holds what the log says. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

interface Closing {
  readonly reason: SessionClosed_Reason;
  readonly trace: Trace;
  /** Of the session as an attempt at a task: then its last answer, which nothing continues, is among its turns. */
  readonly outcome?: Outcome;
}

export async function closeSession(
  { index, log, events }: LinkParts,
  session: string,
  { reason, trace, outcome }: Closing,
): Promise<void> {
  const entry = await index.session(session);
  // A late answer or a rebuild may have touched a session that was closed before, or of which nothing is left.
  if (entry === undefined || (await index.isClosed(session))) {
    if (outcome !== undefined) events.outcomeLate();
    return index.forgetIdle(session);
  }
  const { tenant, user, policy } = entry;
  const continued = await index.continuedTurns(session);
  const [last = ''] =
    outcome !== undefined || continued.length === 0 ? await lastAnswer(index, session, continued) : [];
  const turns = outcome === undefined || last === '' ? continued : [...continued, last];
  const alone = outcome === undefined ? last : '';
  await log.publishClosed({ session, tenant, user, policy, reason, turns, outcome, alone }, trace);
  await index.markClosed(session);
  events.closed(reason, turns.length);
}

/** Of those that nothing continued, the newest that goes on from where the session had come to: requests beside the main line do not. */
async function lastAnswer(index: LinkParts['index'], session: string, continued: readonly string[]): Promise<string[]> {
  for (const turn of await index.sessionAnswers(session)) {
    const entry = await index.turn(turn);
    if (entry?.session === session && entry.continuedBy === '' && entry.parent === (continued.at(-1) ?? ''))
      return [turn];
  }
  return [];
}

const batchMax = 100;
const looksPerIdleTime = 4;
const lookAtMostEveryMs = 15_000;

export interface IdleOptions {
  readonly clock: Clock;
  readonly idleMs: number;
  readonly turnsTaken: AnswersTaken;
  readonly fail: (error: unknown) => void;
}

export class IdleSessions {
  private cancel: (() => void) | undefined;
  private running: Promise<void> = Promise.resolve();
  /** All that the log had by then is known. */
  private knownUntilMs = 0;
  /** By which more will be known, once what the log had then is taken. */
  private awaited: Moment | undefined;

  constructor(
    private readonly parts: LinkParts,
    private readonly inTurn: InTurn,
    private readonly options: IdleOptions,
  ) {}

  start(): void {
    const { clock, idleMs } = this.options;
    this.cancel = clock.timer(Math.min(lookAtMostEveryMs, idleMs / looksPerIdleTime), () => {
      this.running = this.look().finally(() => {
        if (this.cancel !== undefined) this.start();
      });
    });
  }

  async stop(): Promise<void> {
    this.cancel?.();
    this.cancel = undefined;
    await this.running;
  }

  /** While there is more to take, as after an outage, what was said last in a session may lie there unread. */
  private async knownUntil(): Promise<number> {
    const { turnsTaken } = this.options;
    const now = await this.parts.log.now();
    if (await turnsTaken(now.sequence)) {
      this.knownUntilMs = now.timeMs;
      this.awaited = undefined;
    } else if (this.awaited === undefined) this.awaited = now;
    else if (await turnsTaken(this.awaited.sequence)) {
      this.knownUntilMs = this.awaited.timeMs;
      this.awaited = now;
    }
    return this.knownUntilMs;
  }

  /** A failed look is logged, and the next one tries again. */
  private async look(): Promise<void> {
    const { index, events } = this.parts;
    try {
      const beforeMs = (await this.knownUntil()) - this.options.idleMs;
      for (let looked = batchMax; looked === batchMax && this.cancel !== undefined;) {
        const idle = await this.inTurn(() => index.idleSince(beforeMs, batchMax));
        for (const session of idle)
          await this.inTurn(() =>
            closeSession(this.parts, session, { reason: SessionClosed_Reason.REASON_IDLE, trace: newTrace() }),
          );
        looked = idle.length;
      }
      events.openSessions(await index.openSessions());
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      events.idleLookFailed(error);
      if (error.retry === 'stop') this.options.fail(error);
    }
  }
}
