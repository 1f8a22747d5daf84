// What became of each version of a policy, and how it is shown.
//
// In: facts of the stages that versions reached, in the order of the log. Out: a row a version, and versions as clients
// read them. Pure.
import { versionNumber } from '@backtalk/kit';
import { WeightsStaged_Stage, type ComparedAnswer, type WeightsStaged } from '@backtalk/proto/facts';

const stages = {
  STAGE_UNSPECIFIED: 'unknown',
  STAGE_CANDIDATE: 'candidate',
  STAGE_CANARY: 'canary',
  STAGE_STABLE: 'stable',
  STAGE_BURNED: 'burned',
  STAGE_RETIRED: 'retired',
  UNRECOGNIZED: 'unknown',
} as const satisfies Record<WeightsStaged_Stage, string>;

/** Newer ones push older ones out. */
const versionsKept = 200;

export interface VersionRow {
  readonly policy: string;
  readonly version: string;
  readonly stage: WeightsStaged_Stage;
  readonly why: string;
  /** The version that answered before it. */
  readonly previous: string;
  /** When it reached its stage: milliseconds since 1970. */
  readonly stagedAtMs: number;
  readonly compared: readonly ComparedAnswer[];
}

/** Newest first. A stage that compares nothing keeps what an earlier one found. */
export function withStage(rows: readonly VersionRow[], staged: WeightsStaged, stagedAtMs: number): VersionRow[] {
  const { policy, version, stage, why } = staged;
  const before = rows.find((row) => row.version === version);
  const row: VersionRow = {
    policy,
    version,
    stage,
    why,
    previous: before?.previous || staged.previous,
    stagedAtMs,
    compared: staged.compared.length > 0 ? staged.compared : (before?.compared ?? []),
  };
  const number = ({ version: name }: VersionRow) => versionNumber(policy, name) ?? 0;
  const others = rows.filter((other) => other.version !== version);
  return [row, ...others].toSorted((a, b) => number(b) - number(a)).slice(0, versionsKept);
}

/**
 * As clients read it.
 * @param serving the version that new requests are answered by
 */
export function versionAnswer(row: VersionRow, serving: string) {
  const isServing = row.version === serving;
  // One that engines had let go of may answer again, after a rollback.
  const isBack = isServing && row.stage === WeightsStaged_Stage.STAGE_RETIRED;
  return {
    id: row.version,
    object: 'version',
    policy: row.policy,
    stage: isBack ? stages.STAGE_STABLE : stages[row.stage],
    serving: isServing,
    why: isBack ? null : row.why || null,
    previous: row.previous || null,
    staged_at: new Date(row.stagedAtMs).toISOString(),
    compared: row.compared.map(({ question, before, after }) => ({ question, before, after })),
  };
}
