// The chain of `weights.staged` facts of one policy: reads it, folds it, appends to it. Appending names the state that the
// decision was made on: if that has changed since, nothing is appended, the state is read anew, and `fact_superseded` is
// thrown. So of two deciders one wins.
import { isBacktalkError, type FactPublisher, type FactReader, type Trace } from '@backtalk/kit';
import { WeightsStaged } from '@backtalk/proto/facts';
import { emptyState, fold, foldAll, isSameRelease, type PolicyState, type StagedAt } from '../domain/policy-state.js';

export class StagedChain {
  private folded: PolicyState;

  constructor(
    private readonly reader: FactReader,
    private readonly publisher: FactPublisher,
    private readonly policy: string,
  ) {
    this.folded = emptyState(policy);
  }

  get state(): PolicyState {
    return this.folded;
  }

  async reload(): Promise<PolicyState> {
    const filter = { weightsStaged: { policy: this.policy } };
    const chain: StagedAt[] = [];
    for await (const { sequence, message } of this.reader.read(['weightsStaged'], { filter }))
      chain.push({ sequence, message });
    this.folded = foldAll(emptyState(this.policy), chain);
    return this.folded;
  }

  /** Reads anew where another publisher has appended. */
  async follow(): Promise<void> {
    const last = await this.reader.lastHeaders('weightsStaged', { policy: this.policy });
    if (last !== undefined && last.sequence > this.folded.sequence) await this.reload();
  }

  async append(after: PolicyState, fields: Partial<WeightsStaged>, trace?: Trace): Promise<PolicyState> {
    const message = WeightsStaged.fromPartial({ policy: this.policy, ...fields });
    for (let base = after; ; base = this.folded) {
      try {
        const { sequence } = await this.publisher.publish('weightsStaged', message, {
          expectSequence: base.sequence,
          ...(trace === undefined ? {} : { trace }),
        });
        this.folded = fold(base, { sequence, message });
        return this.folded;
      } catch (error) {
        if (!isBacktalkError(error, 'fact_superseded')) throw error;
        const present = await this.reload();
        if (present.sequence === base.sequence || !isSameRelease(after, present)) throw error;
      }
    }
  }
}
