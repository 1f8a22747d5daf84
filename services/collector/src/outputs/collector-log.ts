// The collector's view of the log: requests with their messages, its own two facts, and the time at the broker.
import {
  Refusals,
  TurnLog,
  type Broker,
  type FactPublisher,
  type FactReader,
  type StoredFact,
  type Trace,
} from '@backtalk/kit';
import type { SessionClosed, TurnContinued, TurnWithheld } from '@backtalk/proto/facts';
import { ownConsent, trainsBy, type Trains } from '../domain/consent.js';
import { readMessages, type ChatMessage } from '../domain/messages.js';
import { collectorErrors } from '../errors.js';
import type { Owner } from './turn-index.js';

/** A request as the linker needs it, from a fact in flight or from the log. */
export type OpenedTurn = Pick<StoredFact<'turnOpened'>, 'message' | 'sequence' | 'timeMs' | 'trace'>;

interface TimedAnswer {
  /** When the broker answered. */
  readonly ts?: string;
  readonly state: { readonly last_seq: number };
}

/** A time at the broker, and the last sequence that its log had then. */
export interface Moment {
  readonly timeMs: number;
  readonly sequence: number;
}

export class CollectorLog {
  private readonly turns: TurnLog;
  private readonly refusals: Refusals;

  constructor(
    private readonly broker: Broker,
    private readonly reader: FactReader,
    private readonly publisher: FactPublisher,
  ) {
    // A "no" that a copy of the log lacks would be none.
    this.turns = new TurnLog(reader, true);
    this.refusals = new Refusals(broker);
  }

  opened({ tenant, user }: Owner, turn: string): Promise<OpenedTurn | undefined> {
    return this.turns.opened({ tenant, user, turn });
  }

  async messages({ message }: OpenedTurn): Promise<readonly ChatMessage[]> {
    const { turn: own } = message;
    const { messages } = await this.turns.conversation(message, (turn) =>
      turn === own ? collectorErrors.conversationUnreadable({ turn }) : collectorErrors.turnMissing({ turn }),
    );
    return readMessages(messages);
  }

  around(request: OpenedTurn): RequestReader {
    return new RequestReader(this, request);
  }

  /** Stores the continuation, or finds that another one was first; returns the turn that counts as the next one. */
  async publishContinued(fact: TurnContinued, trace: Trace, link: Trace): Promise<string> {
    const { stored } = await this.publisher.publish('turnContinued', fact, { trace, links: [link] });
    if (stored === 'now') return fact.continuedBy;
    const { tenant, user, turn } = fact;
    return (await this.turns.continued({ tenant, user, turn }))?.message.continuedBy ?? fact.continuedBy;
  }

  /** What the log says of a turn's consent that the index has forgotten. */
  async trains({ tenant, user }: Owner, turn: string): Promise<Trains> {
    const withheld = await this.turns.withheld({ tenant, user, turn });
    if (withheld !== undefined) return trainsBy({ train: false, source: withheld.message.source });
    const opened = await this.opened({ tenant, user }, turn);
    return opened === undefined ? 'unknown' : trainsBy(ownConsent(opened.message));
  }

  /** In any of their turns, or in those of one session, whether or not the log still holds them. */
  async saidNo(ids: Owner & { readonly session?: string }): Promise<boolean> {
    return (await this.refusals.said(ids)) || this.turns.saidNo(ids);
  }

  /** Keeps a "no" for longer than the log does. */
  keepRefusal(fact: TurnWithheld): Promise<void> {
    return this.refusals.note(fact);
  }

  async publishWithheld(fact: TurnWithheld, trace: Trace): Promise<void> {
    await this.publisher.publish('turnWithheld', fact, { trace });
  }

  /** Whether a session was closed before a place in the log. */
  async wasClosed({ tenant, user }: Owner, session: string, before: number): Promise<boolean> {
    const closed = await this.reader.last('sessionClosed', { tenant, user, session }, { sure: true });
    return closed !== undefined && closed.sequence < before;
  }

  async publishClosed(fact: SessionClosed, trace: Trace): Promise<void> {
    await this.publisher.publish('sessionClosed', fact, { trace });
  }

  /** Facts carry the broker's time, so what is measured against them must, too: this service's own clock may be wrong. */
  async now(): Promise<Moment> {
    const answer: TimedAnswer = await this.broker.jsm.streams.info('TURNS');
    const timeMs = Date.parse(answer.ts ?? '');
    if (Number.isNaN(timeMs)) throw collectorErrors.brokerTimeUnknown();
    return { timeMs, sequence: answer.state.last_seq };
  }
}

/** What is read about one request and the turns around it, each fetched and decoded once. */
export class RequestReader {
  private readonly facts = new Map<string, Promise<OpenedTurn | undefined>>();
  private readonly decoded = new Map<string, Promise<readonly ChatMessage[]>>();

  constructor(
    private readonly log: CollectorLog,
    private readonly request: OpenedTurn,
  ) {
    this.facts.set(request.message.turn, Promise.resolve(request));
  }

  opened(turn: string): Promise<OpenedTurn | undefined> {
    const fact = this.facts.get(turn) ?? this.log.opened(this.request.message, turn);
    this.facts.set(turn, fact);
    return fact;
  }

  messages(opened: OpenedTurn): Promise<readonly ChatMessage[]> {
    const { turn } = opened.message;
    const messages = this.decoded.get(turn) ?? this.log.messages(opened);
    this.decoded.set(turn, messages);
    return messages;
  }
}
