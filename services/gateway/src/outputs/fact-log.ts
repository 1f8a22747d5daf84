// The log as the gateway's smaller requests need it: earlier turns, and facts that are confirmed once they are stored.
// Whatever the broker's reason for a failure is, the caller gets `log_unavailable` and can only try again.
import {
  asBacktalkError,
  idsOfSubject,
  type Clock,
  type FactMessage,
  type FactPublisher,
  type FactReader,
  type StoredFact,
  type Trace,
} from '@backtalk/kit';
import {
  Lesson,
  SessionClosed_Reason,
  type BatchClosed,
  type LessonChanged,
  type SessionEnded,
} from '@backtalk/proto/facts';
import { gatewayErrors } from '../errors.js';
import type { Caller } from '../domain/caller.js';
import { SearchRate, searchWindowMs } from '../domain/search-rate.js';
import { sessionOfTurn } from '../domain/session-name.js';

/** What headers say of a turn. */
interface TurnOwner {
  readonly tenant: string;
  readonly user: string;
  readonly policy: string;
  readonly turn: string;
}

/** A session and the last turn in it that is known. */
interface SessionTurn {
  readonly tenant: string;
  readonly user: string;
  readonly session: string;
  readonly turn: string;
}

const turnMs = 2_000;
const sessionMs = 3_000;
const lessonsMs = 5_000;
/** Wishes that are older count no more. */
const judgedMs = 24 * 3_600_000;
/** Of the caller's own turns: the most that one search looks through, */
const turnsLookedThrough = 5_000;
/** and so many between two turns of others on the event loop: 2 ms. */
const turnsLookedThroughAtOnce = 64;
const retryAfterSeconds = 2;

export class FactLog {
  private readonly searches: SearchRate;
  /** By policy the newest as it was read last. It says every lesson of every tenant: 500 take half a megabyte. */
  private readonly batches = new Map<
    string,
    { readonly batch: Promise<BatchClosed | undefined>; readonly atMs: number }
  >();

  constructor(
    private readonly publisher: FactPublisher,
    private readonly reader: FactReader,
    private readonly clock: Clock,
    /** Older sessions are not looked for in the log: Valkey would have forgotten them in any case. */
    private readonly sessionsKeptMs: number,
  ) {
    this.searches = new SearchRate(clock);
  }

  /** Whether it was stored now or had been before. */
  async store<N extends 'feedbackGiven' | 'sessionEnded' | 'lessonChanged'>(
    name: N,
    fact: FactMessage<N>,
    trace: Trace,
  ) {
    const { stored } = await this.publisher.publish(name, fact, { trace }).catch(unavailable);
    return stored;
  }

  /**
   * The user whose turn it is may differ from the caller's own, within the tenant. The turn's text is not read. A turn that was just
   * given is known, also where a copy of the log lags.
   */
  async ownerOf({ tenant }: Pick<Caller, 'tenant'>, turn: string): Promise<TurnOwner | undefined> {
    const found = await this.reader
      .lastHeaders('turnOpened', { tenant, turn }, { timeoutMs: turnMs, sure: true })
      .catch(unavailable);
    if (found === undefined) return undefined;
    const { user = '' } = idsOfSubject('turnOpened', found.subject);
    return { tenant, user: String(user), policy: found.headers.policy ?? '', turn };
  }

  /** What ended a session with this turn; nothing where nothing did, or an earlier turn was its last. */
  async endOf({ tenant, user, session, turn }: SessionTurn): Promise<SessionEnded | undefined> {
    const found = await Promise.all(
      [session, sessionOfTurn(turn)].map((one) =>
        this.reader.last('sessionEnded', { tenant, user, session: one }, { timeoutMs: turnMs }),
      ),
    ).catch(unavailable);
    return found.find((fact) => fact?.message.turn === turn)?.message;
  }

  /** Whether the session was closed for its silence after its last turn; a name that is used again begins another. */
  async isSilent({ tenant, user, session, turn }: SessionTurn): Promise<boolean> {
    const [closed, opened] = await Promise.all([
      this.reader.last('sessionClosed', { tenant, user, session }, { timeoutMs: turnMs }),
      this.reader.lastHeaders('turnOpened', { tenant, user, turn }, { timeoutMs: turnMs, sure: true }),
    ]).catch(unavailable);
    return closed?.message.reason === SessionClosed_Reason.REASON_IDLE && closed.sequence > (opened?.sequence ?? 0);
  }

  /**
   * The lessons of a policy as its newest batch has them, of every tenant; and what was said of one tenant's since.
   * @param sharedMs so long ago another may have read that batch
   */
  async lessonsOf(
    policy: string,
    tenant: string,
    sharedMs = 0,
  ): Promise<{ lessons: readonly Lesson[]; changes: LessonChanged[] }> {
    const changes: LessonChanged[] = [];
    try {
      const { lessons = [], lessonsThrough = 0 } = (await this.newestBatch(policy, sharedMs)) ?? {};
      const filter = { lessonChanged: { policy, tenant } };
      const options = { filter, from: lessonsThrough + 1, signal: AbortSignal.timeout(lessonsMs) };
      for await (const { message } of this.reader.read(['lessonChanged'], options)) changes.push(message);
      return { lessons, changes };
    } catch (error) {
      return unavailable(error);
    }
  }

  private newestBatch(policy: string, sharedMs: number): Promise<BatchClosed | undefined> {
    const known = this.batches.get(policy);
    if (known !== undefined && this.clock.now() - known.atMs < sharedMs) return known.batch;
    const batch: Promise<BatchClosed | undefined> = this.reader
      .last('batchClosed', { policy }, { timeoutMs: lessonsMs })
      .then((found) => found?.message)
      .catch((error: unknown) => {
        if (this.batches.get(policy)?.batch === batch) this.batches.delete(policy);
        throw error;
      });
    this.batches.set(policy, { batch, atMs: this.clock.now() });
    return batch;
  }

  /** What was judged of a person's answers from a place in the log on, of the last day, oldest first. */
  async judgedSince(
    policy: string,
    { tenant, user }: Pick<Caller, 'tenant' | 'user'>,
    from: number,
  ): Promise<StoredFact<'turnJudged'>[]> {
    const judged: StoredFact<'turnJudged'>[] = [];
    const options = {
      filter: { turnJudged: { tenant, user, policy } },
      // A time would go before a place.
      ...(from > 1 ? { from } : { sinceMs: this.clock.now() - judgedMs }),
      signal: AbortSignal.timeout(lessonsMs),
      atOnce: turnsLookedThroughAtOnce,
      // What cannot be read is no wish.
      onUnreadable: () => undefined,
    };
    try {
      for await (const fact of this.reader.read(['turnJudged'], options)) judged.push(fact);
      return judged;
    } catch (error) {
      return unavailable(error);
    }
  }

  /** What a batch of the policy takes that changes nothing but its lessons. */
  async lessonsBytes(policy: string): Promise<number> {
    const batch = await this.reader.last('batchClosed', { policy }, { timeoutMs: lessonsMs }).catch(unavailable);
    return (batch?.message.lessons ?? []).reduce((sum, lesson) => sum + Lesson.encode(lesson).finish().length, 0);
  }

  /** The first turn of any of these sessions, by the headers of the caller's newer turns. */
  async turnOfSession({ keyId, tenant, user }: Caller, sessions: ReadonlySet<string>) {
    // An unknown name is as long a search as a known one.
    if (!this.searches.permits(keyId))
      throw gatewayErrors.rateLimited({
        what: 'searches for sessions of which no answer is remembered',
        retryAfterSeconds: searchWindowMs / 1000,
      });
    const options = {
      filter: { turnOpened: { tenant, user } },
      sinceMs: this.clock.now() - this.sessionsKeptMs,
      signal: AbortSignal.timeout(sessionMs),
      atOnce: turnsLookedThroughAtOnce,
    };
    let looked = 0;
    try {
      for await (const { headers } of this.reader.headers(['turnOpened'], options)) {
        const { session, turn } = headers;
        if (session !== undefined && turn !== undefined && sessions.has(session)) return { session, user, turn };
        looked += 1;
        if (looked >= turnsLookedThrough) return undefined;
      }
      return undefined;
    } catch (error) {
      return unavailable(error);
    }
  }
}

function unavailable(cause: unknown): never {
  throw gatewayErrors.logUnavailable({ retryAfterSeconds }, asBacktalkError(cause));
}
