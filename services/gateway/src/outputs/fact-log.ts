// The log as the gateway's smaller requests need it: earlier turns, and facts that are confirmed once they are stored.
// Whatever the broker's reason for a failure is, the caller gets `log_unavailable` and can only try again.
import {
  asBacktalkError,
  idsOfSubject,
  isJsonObject,
  TurnLog,
  type BacktalkError,
  type Clock,
  type FactMessage,
  type FactPublisher,
  type FactReader,
  type JsonObject,
  type StoredFact,
  type Trace,
} from '@backtalk/kit';
import { Lesson, SessionClosed_Reason, type LessonChanged, type SessionEnded } from '@backtalk/proto/facts';
import { gatewayErrors } from '../errors.js';
import { openPolicies, type Caller } from '../domain/caller.js';
import { earlierAnswer, type FromLog, type LeftToLog } from '../domain/left-to-log.js';
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
/** Each with the ids of its prompt. */
const answersAtOnce = 8;
const retryAfterSeconds = 2;

export class FactLog {
  private readonly searches: SearchRate;
  private readonly log: TurnLog;

  constructor(
    private readonly publisher: FactPublisher,
    private readonly reader: FactReader,
    private readonly clock: Clock,
    /** Older sessions are not looked for in the log: Valkey would have forgotten them in any case. */
    private readonly sessionsKeptMs: number,
  ) {
    this.searches = new SearchRate(clock);
    this.log = new TurnLog(reader);
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

  /**
   * What a request names by ids, of the caller's own turns. An answer that is not in the log is left out. Throws
   * `previous_response_not_found` where the log lacks any of what was said up to the answer that it goes on from, and
   * `request_too_large` where all of it is more than that.
   */
  async named(caller: Caller, { previous, referred }: LeftToLog, bytesMax: number): Promise<FromLog> {
    const earlier = previous === undefined ? [] : await this.saidUntil(caller, previous, bytesMax);
    const answers: Record<string, JsonObject> = {};
    try {
      for (let at = 0; at < referred.length; at += answersAtOnce) {
        const some = referred.slice(at, at + answersAtOnce);
        const found = await Promise.all(some.map((turn) => this.answerOf(caller, turn)));
        for (const [index, turn] of some.entries()) {
          const answer = found[index];
          if (answer !== undefined) answers[turn] = answer;
        }
      }
    } catch (error) {
      return unavailable(error);
    }
    return { earlier, answers };
  }

  private async saidUntil(caller: Caller, turn: string, bytesMax: number): Promise<JsonObject[]> {
    const { tenant, user } = caller;
    const param = 'previous_response_id';
    const missing = (cause?: BacktalkError) => gatewayErrors.previousResponseNotFound({ param }, cause);
    try {
      const answer = await this.answerOf(caller, turn);
      const opened = answer === undefined ? undefined : await this.log.opened({ tenant, user, turn });
      if (answer === undefined || opened === undefined) throw missing();
      const bytes = await this.log.conversationBytes(opened.message, bytesMax, () => missing());
      if (bytes === undefined) throw gatewayErrors.earlierTooLarge({ param, limitBytes: bytesMax });
      const { messages } = await this.log.conversation(opened.message, () => missing());
      const isSaid = answer['content'] !== '';
      return [...messages.filter(isJsonObject), ...(isSaid ? [answer] : [])];
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      if (error.retry !== 'never') return unavailable(error);
      // A refusal of this house's; any other says that the log's facts cannot be read, and never will.
      throw error.status === undefined ? missing(error) : error;
    }
  }

  /** As a message of the chat API; undefined where it is not in the log, not the caller's own, or of a policy that is not open to them. */
  private async answerOf(caller: Caller, turn: string): Promise<JsonObject | undefined> {
    if (!/^turn_\w{1,64}$/.test(turn)) return undefined;
    const ids = { tenant: caller.tenant, user: caller.user, turn };
    const held = await this.reader.lastHeaders('turnCompleted', ids, { timeoutMs: turnMs, sure: true });
    const found = held === undefined ? undefined : await this.log.completed(ids);
    if (found === undefined) return undefined;
    const { policy } = found.message;
    return openPolicies([policy], caller).includes(policy) ? earlierAnswer(found.message) : undefined;
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

  /** The lessons of a policy as its newest batch has them, of every tenant; and what was said of one tenant's since. */
  async lessonsOf(policy: string, tenant: string): Promise<{ lessons: Lesson[]; changes: LessonChanged[] }> {
    const changes: LessonChanged[] = [];
    try {
      const batch = await this.reader.last('batchClosed', { policy }, { timeoutMs: lessonsMs });
      const { lessons = [], lessonsThrough = 0 } = batch?.message ?? {};
      const filter = { lessonChanged: { policy, tenant } };
      const options = { filter, from: lessonsThrough + 1, signal: AbortSignal.timeout(lessonsMs) };
      for await (const { message } of this.reader.read(['lessonChanged'], options)) changes.push(message);
      return { lessons, changes };
    } catch (error) {
      return unavailable(error);
    }
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
