// The judgements in the log: every revision is stored once, and the highest counts. In: a turn, and how to make its
// next revision. Out: the fact. Two judges that make the same revision have one winner; the other makes the next.
import type { FactPublisher, FactReader, Trace } from '@backtalk/kit';
import type { JudgementAsked, TurnJudged, TurnRejudged } from '@backtalk/proto/facts';
import type { TurnPlace } from '../domain/material.js';
import type { IsBare } from '../domain/words/bare.js';
import { judgeErrors } from '../errors.js';

export type JudgedPlace = Pick<TurnPlace, 'tenant' | 'user' | 'policy' | 'turn'>;

export interface NextRevision {
  /** True for a revision that holds the same already: nothing is added. */
  readonly isThere: (judged: TurnJudged) => boolean;
  /** Nothing: there is no more to say. */
  readonly make: (
    revision: number,
    before: TurnJudged | undefined,
    /** All there are, lowest first. */
    revisions: readonly TurnJudged[],
  ) => TurnJudged | undefined;
}

const triesMax = 8;
/** Revision 0 belongs to the votes, even where feedback comes before them. */
const firstLaterRevision = 1;

export class Judgements {
  constructor(
    private readonly reader: FactReader,
    private readonly publisher: FactPublisher,
    private readonly isBare: IsBare,
  ) {}

  /** All there are, lowest first. Votes may store revision 0 after a later one, so the order of the log says little. */
  async revisions({ tenant, user, policy, turn }: JudgedPlace): Promise<TurnJudged[]> {
    const found: TurnJudged[] = [];
    const filter = { turnJudged: { tenant, user, policy, turn } };
    for await (const { message } of this.reader.read(['turnJudged'], { filter })) found.push(message);
    return found.sort((a, b) => a.revision - b.revision);
  }

  /** That which counts. */
  async highest(place: JudgedPlace): Promise<TurnJudged | undefined> {
    return (await this.revisions(place)).at(-1);
  }

  /** The leader is asked: where a copy of the log lags, all votes would be cast, and paid for, once more. */
  async isJudged({ tenant, user, policy, turn }: JudgedPlace): Promise<boolean> {
    const ids = { tenant, user, policy, turn, revision: 0 };
    return (await this.reader.last('turnJudged', ids, { sure: true })) !== undefined;
  }

  /** Whether anything but the votes spoke. The leader is asked: a copy of the log that lags would say no for good. */
  async isRevised({ tenant, user, policy, turn }: JudgedPlace): Promise<boolean> {
    const ids = { tenant, user, policy, turn, revision: firstLaterRevision };
    return (await this.reader.last('turnJudged', ids, { sure: true })) !== undefined;
  }

  /** False: the same revision was stored before, by this or another judge. */
  async storeFirst(judged: TurnJudged, trace: Trace): Promise<boolean> {
    return this.store(judged, trace);
  }

  /** What was stored; nothing when it was there before, or there was nothing to say. */
  async append(place: JudgedPlace, { isThere, make }: NextRevision, trace: Trace): Promise<TurnJudged | undefined> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const revisions = await this.revisions(place);
      if (revisions.some(isThere)) return undefined;
      const before = revisions.at(-1);
      const made = make(Math.max(firstLaterRevision, (before?.revision ?? 0) + 1), before, revisions);
      if (made === undefined) return undefined;
      if (await this.store(made, trace)) return made;
    }
    throw judgeErrors.revisionLost();
  }

  async isRejudged({ tenant, user, policy, turn, asked }: JudgementAsked): Promise<boolean> {
    const ids = { tenant, user, policy, turn, asked };
    return (await this.reader.last('turnRejudged', ids, { sure: true })) !== undefined;
  }

  /** Beside what was judged. What was stored before for this asking, by this or another judge, stays. */
  async storeAgain(rejudged: TurnRejudged, trace: Trace): Promise<void> {
    const { judged } = rejudged;
    const message = { ...rejudged, judged: judged && this.withBare(judged) };
    await this.publisher.publish('turnRejudged', message, { trace });
  }

  private async store(judged: TurnJudged, trace: Trace): Promise<boolean> {
    const { stored } = await this.publisher.publish('turnJudged', this.withBare(judged), { trace });
    return stored === 'now';
  }

  private withBare(judged: TurnJudged): TurnJudged {
    const { hint, stands, wish } = judged;
    const bare = this.isBareOf(hint, stands);
    return { ...judged, bare, wish: wish && { ...wish, bare: this.isBareOf(wish.text, wish.stands) } };
  }

  private isBareOf(words: string, stands: boolean): boolean {
    return words !== '' && !stands && this.isBare(words);
  }
}
