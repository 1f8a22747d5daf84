// The log as the gateway's smaller requests need it: earlier turns, and facts that are confirmed once they are stored.
// Whatever the broker's reason for a failure is, the caller gets `log_unavailable` and can only try again.
import {
  asBacktalkError,
  idsOfSubject,
  type Clock,
  type FactMessage,
  type FactPublisher,
  type FactReader,
  type Trace,
} from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import type { Caller } from '../domain/caller.js';

/** What headers say of a turn. */
interface TurnOwner {
  readonly tenant: string;
  readonly user: string;
  readonly policy: string;
  readonly turn: string;
}

const turnMs = 2_000;
const sessionMs = 3_000;
/** Of one caller's own turns: the most that are looked through for a session that Valkey forgot. */
const turnsLookedThrough = 5_000;
const retryAfterSeconds = 2;

export class FactLog {
  private isSearching = false;

  constructor(
    private readonly publisher: FactPublisher,
    private readonly reader: FactReader,
    private readonly clock: Clock,
    /** Older sessions are not looked for in the log: Valkey would have forgotten them in any case. */
    private readonly sessionsKeptMs: number,
  ) {}

  /** Whether it was stored now or had been before. */
  async store<N extends 'feedbackGiven' | 'sessionEnded'>(name: N, fact: FactMessage<N>, trace: Trace) {
    const { stored } = await this.publisher.publish(name, fact, { trace }).catch(unavailable);
    return stored;
  }

  /** The user whose turn it is may differ from the caller's own, within the tenant. The turn's text is not read. */
  async ownerOf({ tenant }: Caller, turn: string): Promise<TurnOwner | undefined> {
    const found = await this.reader
      .lastHeaders('turnOpened', { tenant, turn }, { timeoutMs: turnMs })
      .catch(unavailable);
    if (found === undefined) return undefined;
    const { user = '' } = idsOfSubject('turnOpened', found.subject);
    return { tenant, user: String(user), policy: found.headers.policy ?? '', turn };
  }

  /**
   * The first turn of any of these sessions, by the headers of the caller's newer turns. One search runs at a time: an
   * unknown name is as long a search as a forgotten one.
   */
  async turnOfSession({ tenant, user }: Caller, sessions: ReadonlySet<string>) {
    if (this.isSearching) throw gatewayErrors.overloaded({ retryAfterSeconds });
    this.isSearching = true;
    const sinceMs = this.clock.now() - this.sessionsKeptMs;
    const options = { filter: { turnOpened: { tenant, user } }, sinceMs, signal: AbortSignal.timeout(sessionMs) };
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
    } finally {
      this.isSearching = false;
    }
  }
}

function unavailable(cause: unknown): never {
  throw gatewayErrors.logUnavailable({ retryAfterSeconds }, asBacktalkError(cause));
}
