// Fills the index again from the headers of the log, after Valkey was emptied or started again, or on a first start. Headers
// suffice for who answered what and what continues what. What the index would have forgotten by now is not read. Requests
// that contain an answer and continue nothing yet are linked again: what they waited for was forgotten with the index.
// Repeating it changes nothing.
import { asBacktalkError, type Clock, type FactHeadersRow, type FactReader } from '@backtalk/kit';
import { collectorErrors } from '../errors.js';
import type { Events } from '../events.js';
import type { Owner, TurnIndex } from './turn-index.js';

const facts = ['turnOpened', 'turnCompleted', 'turnContinued', 'sessionClosed'] as const;

type HeaderRecord = FactHeadersRow<(typeof facts)[number]>;

export interface RebuilderParts {
  readonly index: TurnIndex;
  readonly reader: FactReader;
  readonly events: Events;
  readonly clock: Clock;
  /** The broker's time of the oldest fact that the index still wants. */
  readonly keptSinceMs: () => Promise<number>;
  /** Links one opened turn of the log again. */
  readonly relink: (owner: Owner, turn: string) => Promise<void>;
}

/** Writes that are under way at once: one connection keeps their order, so that none has to wait for the one before. */
const writesMax = 512;

export class Rebuilder {
  constructor(private readonly parts: RebuilderParts) {}

  /** Resolves when the index holds what the log says; costs one look-up while it does. To be called by one at a time. */
  async ensureReady(): Promise<void> {
    if (await this.parts.index.isReady()) return;
    try {
      const { index, reader, clock, events, relink, keptSinceMs } = this.parts;
      const startedAt = clock.now();
      const life = await index.currentLife();
      const filling = new Filling(index);
      for await (const record of reader.headers(facts, { sinceMs: await keptSinceMs() })) await filling.take(record);
      await filling.written();
      for (const [turn, owner] of filling.unlinked) await relink(owner, turn);
      await index.markReady(life);
      events.rebuilt(filling.count, clock.now() - startedAt);
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      // No fault of the fact that asked for the index: it waits.
      throw error.retry === 'stop' ? error : collectorErrors.indexUnavailable({}, error);
    }
  }
}

/** One pass over the log. */
class Filling {
  count = 0;
  /** No more than what lies unlinked in the log: most are taken out again by their continuation, a few facts later. */
  readonly unlinked = new Map<string, Owner>();
  /** Sessions of turns that were opened and not yet answered. */
  private readonly sessions = new Map<string, string>();
  private writes: Promise<void>[] = [];

  constructor(private readonly index: TurnIndex) {}

  async take(record: HeaderRecord): Promise<void> {
    const { name, headers, sequence, timeMs } = record;
    const [tenant = '', user = ''] = record.subject.split('.').slice(3, 5);
    const { turn = '', parent = '', session = '', policy = '', continuedBy = '' } = headers;
    const owner = { tenant, user, policy };
    this.count += 1;
    switch (name) {
      case 'turnOpened':
        this.write(this.index.putTurn(turn, { ...owner, session, parent }));
        this.sessions.set(turn, session);
        if (headers.answerKey !== undefined) this.unlinked.set(turn, owner);
        break;
      case 'turnCompleted': {
        const known = this.sessions.get(turn) ?? '';
        this.sessions.delete(turn);
        const answered = known === '' ? session : known;
        this.write(this.index.putTurn(turn, { ...owner, session: answered, completedSequence: sequence }));
        if (headers.answerKey !== undefined) this.write(this.index.addAnswer(owner, headers.answerKey, turn, sequence));
        if (answered === '') break;
        this.write(this.index.addSessionAnswer(answered, turn, sequence));
        this.write(this.index.touchSession(answered, owner, timeMs));
        break;
      }
      case 'turnContinued':
        this.write(this.index.putTurn(turn, { ...owner, session, parent, continuedBy }));
        this.write(this.index.putTurn(continuedBy, { ...owner, session, parent: turn }));
        this.write(this.index.addContinued(session, turn, sequence));
        if (this.sessions.has(continuedBy)) this.sessions.set(continuedBy, session);
        this.unlinked.delete(continuedBy);
        break;
      case 'sessionClosed':
        this.write(this.index.markClosed(session));
        break;
    }
    if (this.writes.length >= writesMax) await this.written();
  }

  /** Throws what a write failed with. */
  async written(): Promise<void> {
    await Promise.all(this.writes.splice(0));
  }

  private write(writing: Promise<void>): void {
    // It is thrown by `written`, which may be called much later.
    writing.catch(() => undefined);
    this.writes.push(writing);
  }
}
