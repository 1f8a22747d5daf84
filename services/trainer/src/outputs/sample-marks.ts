// Marks in the log that keep a turn in one batch only, whatever is said about it later. A turn's mark names the batch that may take it:
// it is stored before that batch closes, and made anew only when the batch it names has closed without the turn. Marks and batches are
// both written at an expected sequence, so no turn is in two batches, whichever trainer dies or leads in between.
import { isBacktalkError, type FactPublisher, type FactReader, type StoredFact, type TurnIds } from '@backtalk/kit';

import { trainerErrors } from '../errors.js';

/** Whether a batch that has closed names the turn. */
export type IsIn = (batch: number, turn: string) => Promise<boolean>;

const marksAtOnce = 64;
/** Of one mark, against another trainer that marks the same turn. */
const triesMax = 3;

export class SampleMarks {
  constructor(
    private readonly policy: string,
    private readonly reader: FactReader,
    private readonly publisher: FactPublisher,
  ) {}

  /** The batch that a turn's newest mark names. */
  async batchOf(ids: TurnIds): Promise<number | undefined> {
    return (await this.newest(ids))?.message.batch;
  }

  /** Marks turns for a batch that is about to close. Out: those that stay out of it, because another batch has them. */
  async claim(turns: readonly TurnIds[], batch: number, isIn: IsIn): Promise<string[]> {
    const refused: string[] = [];
    for (let start = 0; start < turns.length; start += marksAtOnce) {
      const group = turns.slice(start, start + marksAtOnce);
      const marked = await Promise.all(group.map((ids) => this.mark(ids, batch, isIn)));
      refused.push(...group.filter((_, index) => marked[index] === false).map(({ turn }) => turn));
    }
    return refused;
  }

  private async mark(ids: TurnIds, batch: number, isIn: IsIn): Promise<boolean> {
    const { tenant, user, turn } = ids;
    let expectSequence = 0;
    for (let tries = 1; ; tries += 1) {
      try {
        await this.publisher.publish(
          'sampleTaken',
          { turn, tenant, user, policy: this.policy, batch },
          { expectSequence },
        );
        return true;
      } catch (error) {
        if (!isBacktalkError(error, 'fact_superseded') || tries >= triesMax) throw error;
      }
      const before = await this.newest(ids);
      // A copy of the log that lags, or a batch that this trainer has not read.
      if (before === undefined || before.message.batch > batch) throw trainerErrors.ledgerBehind({ batch });
      if (before.message.batch === batch) return true;
      if (await isIn(before.message.batch, turn)) return false;
      expectSequence = before.sequence;
    }
  }

  private newest({ tenant, user, turn }: TurnIds): Promise<StoredFact<'sampleTaken'> | undefined> {
    return this.reader.last('sampleTaken', { tenant, user, policy: this.policy, turn }, { sure: true });
  }
}
