// The collector's view of the log: turns by their subject, conversations decoded, and its own two facts.
import { decodeConversation, type FactPublisher, type FactReader, type StoredFact, type Trace } from '@backtalk/kit';
import type { SessionClosed, TurnContinued, TurnOpened } from '@backtalk/proto/facts';
import { collectorErrors } from '../errors.js';
import type { Owner } from './turn-index.js';

export class TurnLog {
  constructor(
    private readonly reader: FactReader,
    private readonly publisher: FactPublisher,
  ) {}

  opened({ tenant, user }: Owner, turn: string): Promise<StoredFact<'turnOpened'> | undefined> {
    return this.reader.last('turnOpened', { tenant, user, turn });
  }

  /** The whole list of messages of a request, as JSON values. */
  async messages(opened: TurnOpened): Promise<readonly unknown[]> {
    if (opened.conversation === undefined) throw collectorErrors.conversationUnreadable({ turn: opened.turn });
    const decoded = await decodeConversation(opened.conversation, async (turn) => {
      const base = await this.opened(opened, turn);
      if (base?.message.conversation === undefined) throw collectorErrors.turnMissing({ turn });
      return base.message.conversation;
    });
    return decoded.messages;
  }

  /** Stores the continuation, or finds that another one was first; tells which turn continued it in the end. */
  async publishContinued(fact: TurnContinued, trace: Trace, link: Trace): Promise<{ continuedBy: string }> {
    const { tenant, user, turn, continuedBy } = fact;
    const { stored } = await this.publisher.publish('turnContinued', fact, { trace, links: [link] });
    if (stored === 'now') return { continuedBy };
    const first = await this.reader.last('turnContinued', { tenant, user, turn });
    return { continuedBy: first?.message.continuedBy ?? continuedBy };
  }

  async publishClosed(fact: SessionClosed, trace: Trace): Promise<void> {
    await this.publisher.publish('sessionClosed', fact, { trace });
  }
}
