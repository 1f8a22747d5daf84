// How a step's version is told to the person who talks to it. In: versions as `/v1/versions` gives them, newest first. Out: cards, each with
// the answers that became others. Pure.

export interface Compared {
  readonly question: string;
  readonly before: string;
  readonly after: string;
}

export interface Version {
  readonly id: string;
  readonly stage: string;
  readonly serving: boolean;
  readonly why: string | null;
  readonly previous: string | null;
  readonly staged_at: string;
  readonly compared: readonly Compared[];
}

export interface VersionCard {
  readonly id: string;
  readonly stage: string;
  readonly label: string;
  readonly stagedAt: string;
  readonly about: string;
  readonly changed: readonly Compared[];
}

const labels: Readonly<Record<string, string>> = {
  candidate: 'being checked',
  canary: 'answers some requests',
  stable: 'answered until a newer one',
  burned: 'taken back',
  retired: 'out of the engines',
};

/** The base is no step, and has no card. */
export function versionCards(versions: readonly Version[]): VersionCard[] {
  const steps = versions.filter(({ id }) => !id.endsWith('-v0'));
  return steps.map(({ id, stage, serving, why, previous, staged_at: stagedAt, compared }) => {
    const changed = compared.filter(({ before, after }) => before !== after);
    return {
      id,
      stage: serving ? 'serving' : stage,
      label: serving ? 'answers now' : (labels[stage] ?? stage),
      stagedAt,
      about: stage === 'burned' && why !== null ? why : aboutOf(compared.length, changed.length, previous),
      changed,
    };
  });
}

function aboutOf(asked: number, changed: number, previous: string | null): string {
  if (asked === 0) return '';
  const before = previous ?? 'the version before';
  return `${String(changed)} of ${String(asked)} answers to the same questions are others than those of ${before}`;
}
