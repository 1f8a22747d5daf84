// Fills the index again from the headers of the log, after Valkey was emptied or started again, or on a first start. Headers
// suffice for who answered what and what continues what. What the index would have forgotten by now is not read. Requests
// that contain an answer and continue nothing yet are linked again: what they waited for was forgotten with the index.
// Facts of releases whose headers name no consent are read whole, and every "no" among them is noted in the log.
// Repeating it changes nothing.
import {
  asBacktalkError,
  type Clock,
  type FactHeadersRow,
  type FactReader,
  type StoredFact,
  type Trace,
  type TurnIds,
} from '@backtalk/kit';
import type { Consent, TurnWithheld } from '@backtalk/proto/facts';
import { ownConsent, type Trains } from '../domain/consent.js';
import { sessionBegunBy } from '../domain/placement.js';
import { collectorErrors } from '../errors.js';
import type { Events } from '../events.js';
import type { Owner, TurnIndex } from './turn-index.js';

const facts = ['turnOpened', 'turnWithheld', 'turnCompleted', 'turnContinued', 'sessionClosed'] as const;

type HeaderRecord = FactHeadersRow<(typeof facts)[number]>;

type OldFact = Pick<StoredFact<'turnOpened' | 'turnContinued'>, 'message' | 'trace'>;

export interface RebuilderParts {
  readonly index: TurnIndex;
  readonly reader: FactReader;
  readonly events: Events;
  readonly clock: Clock;
  /** The broker's time of the oldest fact that the index still wants. */
  readonly keptSinceMs: () => Promise<number>;
  /** One fact of the log, as far as it can still be read. */
  readonly readOld: (name: 'turnOpened' | 'turnContinued', ids: TurnIds) => Promise<OldFact | undefined>;
  /** Notes in the log that a turn is withheld, where its own fact says so. */
  readonly noteRefusal: (fact: TurnWithheld, trace: Trace) => Promise<void>;
  /** Whether a session was closed before a place in the log, however long ago. */
  readonly wasClosed: (owner: Owner, session: string, before: number) => Promise<boolean>;
  /** Links one opened turn of the log again. */
  readonly relink: (owner: Owner, turn: string) => Promise<void>;
}

/** Writes that are under way at once: one connection keeps their order, so that none has to wait for the one before. */
const writesMax = 512;

/** Facts that are read whole at once. */
const readsMax = 16;

export class Rebuilder {
  constructor(private readonly parts: RebuilderParts) {}

  /** Resolves when the index holds what the log says; costs one look-up while it does. To be called by one at a time. */
  async ensureReady(): Promise<void> {
    if (await this.parts.index.isReady()) return;
    try {
      const { index, reader, clock, events, relink, keptSinceMs, wasClosed } = this.parts;
      const startedAt = clock.now();
      const life = await index.currentLife();
      const filling = new Filling(index, wasClosed);
      filling.oldUntil = await this.readOldConsents(filling);
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

  /** Facts up to the first whose header names a consent; returns where they end. */
  private async readOldConsents(filling: Filling): Promise<number> {
    let until = 0;
    let together: Promise<void>[] = [];
    for await (const record of this.parts.reader.headers(['turnOpened', 'turnContinued'])) {
      if (record.headers.train !== undefined) break;
      until = record.sequence;
      together.push(this.readOldConsent(filling, record));
      if (together.length < readsMax) continue;
      await Promise.all(together);
      together = [];
    }
    await Promise.all(together);
    return until;
  }

  private async readOldConsent(filling: Filling, record: FactHeadersRow<'turnOpened' | 'turnContinued'>) {
    const { readOld, noteRefusal } = this.parts;
    const [tenant = '', user = '', of = ''] = record.subject.split('.').slice(3);
    const fact = await readOld(record.name, { tenant, user, turn: of });
    // Without a word about its consent, what follows it is not learned from.
    if (fact === undefined) return;
    const { message } = fact;
    const consent = ownConsent(message);
    const turn = 'continuedBy' in message ? message.continuedBy : message.turn;
    const session = 'continuedBy' in message ? message.session : message.provisionalSession;
    await filling.takeConsent(turn, session, consent, record.sequence);
    if (!consent.train) await noteRefusal({ turn, tenant, user, session, source: consent.source }, fact.trace);
  }
}

/** What one opened turn of the log says of consent. */
function consentIn(train: string): Trains {
  return train === 'no' ? 'no' : 'yes';
}

/** One pass over the log. */
class Filling {
  count = 0;
  /** Facts up to here have no consent in their headers. */
  oldUntil = 0;
  /** No more than what lies unlinked in the log: most are taken out again by their continuation, a few facts later. */
  readonly unlinked = new Map<string, Owner>();
  /** Of those, the sequences of answers: in which session they are is known once the turn is linked. */
  private readonly unplaced = new Map<string, number>();
  /** Sessions of turns that were opened and not yet answered. */
  private readonly sessions = new Map<string, string>();
  /** Sessions of which something was read. */
  private readonly seen = new Set<string>();
  /** Sessions that ended, and by the name of such a one the session that was begun after it. */
  private readonly closed = new Set<string>();
  private readonly successors = new Map<string, string>();
  /** Of facts without the header. */
  private readonly refused = new Set<string>();
  private writes: Promise<void>[] = [];

  constructor(
    private readonly index: TurnIndex,
    private readonly wasClosed: RebuilderParts['wasClosed'],
  ) {}

  /** "No" where any fact about a turn says so. */
  async takeConsent(turn: string, session: string, { train }: Consent, sequence: number): Promise<void> {
    const known = this.refused.has(turn);
    if (!train) this.refused.add(turn);
    const consent = train && !known ? 'yes' : 'no';
    this.write(this.index.putTurn(turn, { consent }));
    if (consent === 'no') this.write(this.index.putConsent(session, consent, sequence));
    if (this.writes.length >= writesMax) await this.written();
  }

  async take(record: HeaderRecord): Promise<void> {
    const { name, headers, sequence, timeMs } = record;
    const [tenant = '', user = '', source = ''] = record.subject.split('.').slice(3);
    const { turn = '', parent = '', session = '', policy = '', continuedBy = '', train = '' } = headers;
    const owner = { tenant, user, policy };
    this.count += 1;
    switch (name) {
      case 'turnOpened': {
        await this.see(owner, session, { turn, sequence });
        const placed = this.placedIn(session, turn);
        this.write(this.index.putTurn(turn, { ...owner, session: placed, parent }));
        if (train !== '') {
          this.write(this.index.putTurn(turn, { consent: consentIn(train) }));
          // What says nothing changes nothing in its session.
          if (train !== 'default') this.write(this.index.putConsent(session, consentIn(train), sequence));
        }
        this.sessions.set(turn, placed);
        if (headers.answerKey !== undefined) this.unlinked.set(turn, owner);
        break;
      }
      case 'turnWithheld': {
        const consent = source === 'unknown' ? 'unknown' : 'no';
        this.write(this.index.putTurn(turn, { consent }));
        this.write(this.index.putConsent(session, consent, sequence));
        break;
      }
      case 'turnCompleted': {
        const known = this.sessions.get(turn) ?? '';
        this.sessions.delete(turn);
        const answered = known === '' ? session : known;
        this.write(this.index.putTurn(turn, { ...owner, session: answered, completedSequence: sequence }));
        if (headers.answerKey !== undefined) this.write(this.index.addAnswer(owner, headers.answerKey, turn, sequence));
        if (this.unlinked.has(turn)) this.unplaced.set(turn, sequence);
        if (answered === '') break;
        this.write(this.index.addSessionAnswer(answered, turn, sequence));
        this.write(this.index.touchSession(answered, owner, timeMs));
        break;
      }
      case 'turnContinued':
        this.write(this.index.putTurn(turn, { ...owner, session, parent, continuedBy }));
        this.write(this.index.addContinued(session, turn, sequence));
        // What was asked again goes on from the same turn as the answer that it replaced.
        if (headers.act !== undefined) break;
        this.write(this.index.putTurn(continuedBy, { ...owner, session, parent: turn }));
        // Its parent may be trained on, and it agreed: it was withheld only until that was known.
        if (train !== '' && train !== 'no') this.write(this.index.putTurn(continuedBy, { consent: 'yes' }));
        // Of a collector that was replaced late: a "no" in it may not be read here.
        if (train === '' && sequence > this.oldUntil)
          this.write(this.index.putTurn(continuedBy, { consent: 'unknown' }));
        if (this.sessions.has(continuedBy)) this.sessions.set(continuedBy, session);
        this.place(continuedBy, session);
        this.unlinked.delete(continuedBy);
        break;
      case 'sessionClosed':
        this.close(session);
        break;
    }
    if (this.writes.length >= writesMax) await this.written();
  }

  /** One that no request here began may have ended before all that is read. */
  private async see(owner: Owner, session: string, { turn, sequence }: { turn: string; sequence: number }) {
    const isNew = session !== '' && session !== sessionBegunBy(turn) && !this.seen.has(session);
    this.seen.add(session);
    if (isNew && (await this.wasClosed(owner, session, sequence))) this.close(session);
  }

  private close(session: string): void {
    this.closed.add(session);
    this.write(this.index.markClosed(session));
  }

  /** A request that came after the end of its session begins another one, and what follows it by that name is in it. */
  private placedIn(session: string, turn: string): string {
    if (!this.closed.has(session)) return session;
    const successor = this.successors.get(session);
    if (successor !== undefined && !this.closed.has(successor)) return successor;
    const begun = sessionBegunBy(turn);
    this.successors.set(session, begun);
    this.write(this.index.putSuccessor(session, begun));
    return begun;
  }

  private place(turn: string, session: string): void {
    const sequence = this.unplaced.get(turn);
    if (sequence === undefined) return;
    this.unplaced.delete(turn);
    this.write(this.index.addSessionAnswer(session, turn, sequence));
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
