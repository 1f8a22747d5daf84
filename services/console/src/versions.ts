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
  /** The version that answered before it. */
  readonly previous: string;
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

/** The base is no step: it has a card where it answers again after steps were taken. */
export function versionCards(versions: readonly Version[]): VersionCard[] {
  const steps = versions.filter(({ id }) => !isBase(id));
  const named = versions.filter(({ id, serving }) => !isBase(id) || (serving && steps.length > 0));
  return named.map((version) => {
    const { id, stage, serving, compared } = version;
    const changed = isBase(id) ? [] : compared.filter(({ before, after }) => before !== after);
    const previous = version.previous ?? 'the version before';
    return {
      id,
      stage: serving ? 'serving' : stage,
      label: serving ? 'answers now' : (labels[stage] ?? stage),
      stagedAt: version.staged_at,
      previous,
      about: aboutOf(version, changed.length, previous),
      changed,
    };
  });
}

const isBase = (id: string) => id.endsWith('-v0');

function aboutOf({ id, stage, why, compared }: Version, changed: number, previous: string): string {
  if (isBase(id)) return 'the model as it came';
  if (stage === 'burned' && why !== null) return why;
  if (compared.length === 0) return '';
  return `${String(changed)} of ${String(compared.length)} answers to the same questions are others than those of ${previous}`;
}
