// What the log says of a policy's batches and versions, and which of them answered. Pure.
import { givenUpBy } from '@backtalk/kit';
import { WeightsStaged_Stage, type BatchClosed, type WeightsStaged, type WeightsTrained } from '@backtalk/proto/facts';

const { STAGE_CANDIDATE, STAGE_CANARY } = WeightsStaged_Stage;

export interface PolicyFacts {
  /** Each kind in the order of the log. */
  readonly batches: readonly BatchClosed[];
  readonly trained: readonly WeightsTrained[];
  readonly staged: readonly WeightsStaged[];
}

/** The newest batch with samples: neither given up, nor its version burned or serving. */
export function isUndecided({ number, version }: BatchClosed, { batches, staged }: PolicyFacts): boolean {
  const stage = staged.findLast((fact) => fact.version === version)?.stage;
  if (stage !== undefined) return stage === STAGE_CANDIDATE || stage === STAGE_CANARY;
  return !batches.some((batch) => batch.number > number && givenUpBy.has(batch.why));
}

/** Versions that came to answer and were not burned, in that order; the last answers now. */
export function answered(staged: readonly WeightsStaged[]): readonly string[] {
  return staged.reduce<readonly string[]>((line, { version, stage }) => {
    const others = line.filter((other) => other !== version);
    if (stage === WeightsStaged_Stage.STAGE_STABLE) return [...others, version];
    return stage === WeightsStaged_Stage.STAGE_BURNED ? others : line;
  }, []);
}
