// What the log holds about one turn. In: a turn with its tenant and user. Out: its facts, found by their subjects, and its
// conversation with the earlier turns' part put back. It keeps nothing: the same turn may be read again.
import type { Conversation, TurnOpened } from '@backtalk/proto/facts';
import { decodeConversation, type DecodedConversation } from '../conversation/decode.js';
import { conversationBytes } from '../conversation/measure.js';
import type { BacktalkError } from '../errors/backtalk-error.js';
import type { FactReader } from './reader.js';
import { refusalSources } from './refusals.js';
import type { StoredFact } from './stored-fact.js';

export interface TurnIds {
  readonly tenant: string;
  readonly user: string;
  readonly turn: string;
}

interface WithheldIds extends Pick<TurnIds, 'tenant' | 'user'> {
  readonly session?: string;
  readonly turn?: string;
  readonly source?: string;
}

type Found<N extends 'turnOpened' | 'turnCompleted' | 'turnContinued' | 'turnWithheld'> = Promise<
  StoredFact<N> | undefined
>;

export class TurnLog {
  /** @param sure for who acts on a fact's absence: the log's leader is asked before it is believed */
  constructor(
    private readonly reader: FactReader,
    private readonly sure = false,
  ) {}

  opened({ tenant, user, turn }: TurnIds): Found<'turnOpened'> {
    return this.reader.last('turnOpened', { tenant, user, turn }, { sure: this.sure });
  }

  completed({ tenant, user, turn }: TurnIds): Found<'turnCompleted'> {
    return this.reader.last('turnCompleted', { tenant, user, turn }, { sure: this.sure });
  }

  continued({ tenant, user, turn }: TurnIds): Found<'turnContinued'> {
    return this.reader.last('turnContinued', { tenant, user, turn }, { sure: this.sure });
  }

  /** The newest turn of these that consent keeps from learning; ids left out match anything. */
  withheld(ids: WithheldIds): Found<'turnWithheld'> {
    return this.reader.last('turnWithheld', ids, { sure: this.sure });
  }

  /** Whether a person said no in any turn of theirs that the log holds, as far as that is known by now. */
  async saidNo({ tenant, user, session }: Omit<WithheldIds, 'turn' | 'source'>): Promise<boolean> {
    const ids = { tenant, user, ...(session === undefined ? {} : { session }) };
    const found = await Promise.all(refusalSources.map((source) => this.withheld({ ...ids, source })));
    return found.some((fact) => fact !== undefined);
  }

  /**
   * The messages and tools of a request as the client sent them.
   * @param missing makes the error for a conversation that is not in the log: this turn's, or one that it builds on
   */
  async conversation(opened: TurnOpened, missing: (turn: string) => BacktalkError): Promise<DecodedConversation> {
    if (opened.conversation === undefined) throw missing(opened.turn);
    return decodeConversation(opened.conversation, (turn) => this.baseOf(opened, turn, missing));
  }

  /** Bytes of what `conversation` gives, at most; nothing when they are more than the bound. It parses nothing. */
  async conversationBytes(
    opened: TurnOpened,
    bytesMax: number,
    missing: (turn: string) => BacktalkError,
  ): Promise<number | undefined> {
    if (opened.conversation === undefined) throw missing(opened.turn);
    return conversationBytes(opened.conversation, bytesMax, (turn) => this.baseOf(opened, turn, missing));
  }

  private async baseOf(
    { tenant, user }: TurnOpened,
    turn: string,
    missing: (turn: string) => BacktalkError,
  ): Promise<Conversation> {
    const base = await this.opened({ tenant, user, turn });
    if (base?.message.conversation === undefined) throw missing(turn);
    return base.message.conversation;
  }
}
