// The log as the gateway's smaller requests need it: earlier turns, and facts that are confirmed once they are stored.
// Whatever the broker's reason for a failure is, the caller gets `log_unavailable` and can only try again.
import {
  asBacktalkError,
  type FactMessage,
  type FactPublisher,
  type FactReader,
  type StoredFact,
  type Trace,
} from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import type { Caller } from '../domain/caller.js';

const turnMs = 2_000;
const sessionMs = 3_000;
const retryAfterSeconds = 2;

export class FactLog {
  constructor(
    private readonly publisher: FactPublisher,
    private readonly reader: FactReader,
  ) {}

  /** Whether it was stored now or had been before. */
  async store<N extends 'feedbackGiven' | 'sessionEnded'>(name: N, fact: FactMessage<N>, trace: Trace) {
    const { stored } = await this.publisher.publish(name, fact, { trace }).catch(unavailable);
    return stored;
  }

  /** The user whose turn it is may differ from the caller's own, within the tenant. */
  async turn({ tenant }: Caller, turn: string): Promise<StoredFact<'turnOpened'> | undefined> {
    return this.reader.last('turnOpened', { tenant, turn }, { timeoutMs: turnMs }).catch(unavailable);
  }

  /** The first turn of any of these sessions, by the headers of the caller's own turns. */
  async turnOfSession({ tenant, user }: Caller, sessions: ReadonlySet<string>) {
    const options = { filter: { turnOpened: { tenant, user } }, signal: AbortSignal.timeout(sessionMs) };
    try {
      for await (const { headers } of this.reader.headers(['turnOpened'], options)) {
        const { session, turn } = headers;
        if (session !== undefined && turn !== undefined && sessions.has(session)) return { session, user, turn };
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
