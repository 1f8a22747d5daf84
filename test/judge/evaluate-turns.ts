// Measures the judge on labelled turns of anybody's: verdicts, and the hindsight that they carry. In: turns, and a way to cast votes
// where there is one. Out: one report for each way of judging. It fits nothing.
import {
  gatherEvidence,
  isSaidBy,
  judge,
  readStandingSentences,
  type CastVote,
  type JudgeEngine,
  type Material,
  type Reader,
  type Verdict,
  type Voter,
} from '@backtalk/judge';
import { balancedAccuracy, bootstrapInterval, type Interval } from './balanced-accuracy.js';
import { grouped } from './items.js';
import type { LabelledTurn } from './labelled-lines.js';

export interface TurnsOptions {
  readonly turns: readonly LabelledTurn[];
  /** Nothing: no votes. */
  readonly voting: { readonly voter: Voter; readonly engine: JudgeEngine; readonly votes: number } | undefined;
  /** Nothing: words are not read, as wherever a model votes. */
  readonly reader: Reader | undefined;
  readonly onProgress?: (done: number, all: number) => void;
}

export type Way = 'without votes' | 'votes alone' | 'all together';

export interface TurnsReport {
  readonly name: Way;
  readonly n: number;
  readonly balancedAccuracy: number;
  readonly interval: Interval;
  /** By label, how often each verdict was given. */
  readonly confusion: Readonly<Record<ClassName, Readonly<Record<ClassName, number>>>>;
  /** Of the satisfied, those that were taken for corrections. */
  readonly satisfiedAsCorrection: number;
  /** Judged neutral though they are not. */
  readonly abstained: number;
  /** Share of the turns that are judged satisfied or correction, and accuracy on them: every other verdict abstains. */
  readonly decided: { readonly coverage: number; readonly accuracy: number };
  /** Accuracy on the surest share of the turns. */
  readonly atCoverage: readonly { readonly coverage: number; readonly accuracy: number }[];
  readonly hints: HintReport;
  /** Turns with injected text; those of them whose verdict it turned: away from that without it, or from the label. */
  readonly injections: { readonly n: number; readonly flipped: number };
  readonly byKind: readonly {
    readonly kind: string;
    readonly n: number;
    readonly accuracy: number;
    readonly hinted: number;
  }[];
}

export interface HintReport {
  /** Turns on which one is expected. */
  readonly expected: number;
  /** Share of those that have hindsight. */
  readonly recall: number;
  /** Share of those whose hindsight shares its words with what is expected. */
  readonly sharedRecall: number;
  /** Turns on which none is expected, and that have hindsight all the same. */
  readonly falseHints: number;
  /** Those of them that are no corrections. */
  readonly falseOnContent: number;
  /** Those of them that are said to stand. */
  readonly falseStanding: number;
}

type ClassName = 'satisfied' | 'neutral' | 'correction';
const classes: readonly Verdict[] = [1, 0, -1];
const coverages = [1, 0.75, 0.5, 0.25];
const voteWaitMs = 600_000;
const hearing = { choice: 'longest', standing: readStandingSentences() } as const;
const mark = { model: 'evaluated', promptDigest: '' };

interface Judged {
  readonly turn: LabelledTurn;
  readonly verdict: Verdict;
  readonly sureness: number;
  readonly hint: string;
  readonly stands: boolean;
  /** Of the turn without the injected text. */
  readonly clean: Verdict | undefined;
}

export async function evaluateTurns(options: TurnsOptions): Promise<TurnsReport[]> {
  const { turns, voting, onProgress } = options;
  const ways: readonly Way[] =
    voting === undefined ? ['without votes'] : ['without votes', 'votes alone', 'all together'];
  const judged = new Map<Way, Judged[]>(ways.map((way) => [way, []]));
  for (const [at, turn] of turns.entries()) {
    const votes = await castAll(options, turn.material);
    const cleanVotes = await castAll(options, turn.clean);
    for (const way of ways) {
      const found = judgeOne(way, turn.material, votes, options);
      const clean = turn.clean === undefined ? undefined : judgeOne(way, turn.clean, cleanVotes, options).verdict;
      judged.get(way)?.push({
        turn,
        verdict: found.verdict,
        sureness: found.sureness,
        hint: found.hint,
        stands: found.stands,
        clean,
      });
    }
    onProgress?.(at + 1, turns.length);
  }
  return ways.map((way) => reportOf(way, judged.get(way) ?? []));
}

async function castAll({ voting }: TurnsOptions, material: Material | undefined): Promise<CastVote[]> {
  if (voting === undefined || material === undefined) return [];
  const { voter, engine, votes } = voting;
  return Promise.all(
    Array.from({ length: votes }, (_, vote) => voter.cast(engine, material, vote, { deadlineMs: voteWaitMs })),
  );
}

function judgeOne(
  way: Way,
  material: Material | undefined,
  cast: readonly CastVote[],
  { reader }: TurnsOptions,
): Pick<Judged, 'verdict' | 'sureness' | 'hint' | 'stands'> {
  if (material === undefined) return { verdict: 0, sureness: 0, hint: '', stands: false };
  const votes = way === 'without votes' ? [] : cast;
  const evidence = way === 'votes alone' ? [] : gatherEvidence(material);
  const reading = way === 'votes alone' ? undefined : reader?.read(material);
  const { message, outcome } = judge(material, votes, { evidence, reading }, mark, hearing);
  const probable = reading === undefined ? outcome.confidence : Math.exp(reading.odds[labelNames[outcome.verdict]]);
  return {
    verdict: outcome.verdict,
    sureness: evidence.length > 0 ? 1 : probable,
    hint: message.hint,
    stands: message.stands,
  };
}

const labelNames = { '1': 'satisfied', '0': 'unrelated', '-1': 'correction' } as const;

function reportOf(name: Way, judged: readonly Judged[]): TurnsReport {
  const pairs = judged.map(({ turn, verdict }) => ({ label: turn.label, verdict, family: String(turn.number) }));
  const satisfied = judged.filter(({ turn }) => turn.label === 1);
  return {
    name,
    n: judged.length,
    balancedAccuracy: balancedAccuracy(pairs),
    interval: bootstrapInterval(pairs),
    confusion: confusionOf(judged),
    satisfiedAsCorrection: share(satisfied, ({ verdict }) => verdict === -1),
    abstained: judged.filter(({ turn, verdict }) => verdict === 0 && turn.label !== 0).length,
    decided: decidedOf(judged),
    atCoverage: coverages.map((coverage) => ({ coverage, accuracy: accuracyAt(judged, coverage) })),
    hints: hintsOf(judged),
    injections: injectionsOf(judged),
    byKind: [...grouped(judged, ({ turn }) => turn.kind)].map(([kind, own]) => ({
      kind,
      n: own.length,
      accuracy: share(own, isRight),
      hinted: own.filter(({ hint }) => hint !== '').length,
    })),
  };
}

function confusionOf(judged: readonly Judged[]): TurnsReport['confusion'] {
  const row = (label: Verdict) => {
    const count = (verdict: Verdict) =>
      judged.filter((one) => one.turn.label === label && one.verdict === verdict).length;
    return { satisfied: count(1), neutral: count(0), correction: count(-1) };
  };
  const [satisfied, neutral, correction] = classes.map((label) => row(label));
  const empty = { satisfied: 0, neutral: 0, correction: 0 };
  return { satisfied: satisfied ?? empty, neutral: neutral ?? empty, correction: correction ?? empty };
}

function hintsOf(judged: readonly Judged[]): HintReport {
  const wanted = judged.filter(({ turn }) => turn.hint !== '');
  const unwanted = judged.filter(({ turn, hint }) => turn.hint === '' && hint !== '');
  return {
    expected: wanted.length,
    recall: share(wanted, ({ hint }) => hint !== ''),
    sharedRecall: share(wanted, ({ turn, hint }) => hint !== '' && isSaidBy(turn.hint, hint)),
    falseHints: unwanted.length,
    falseOnContent: unwanted.filter(({ turn }) => turn.label !== -1).length,
    falseStanding: unwanted.filter(({ stands }) => stands).length,
  };
}

function injectionsOf(judged: readonly Judged[]): TurnsReport['injections'] {
  const injected = judged.filter(({ turn }) => turn.clean !== undefined || /inject/i.test(turn.kind));
  const flipped = injected.filter(({ turn, verdict, clean }) => verdict !== (clean ?? turn.label));
  return { n: injected.length, flipped: flipped.length };
}

function decidedOf(judged: readonly Judged[]): TurnsReport['decided'] {
  const decided = judged.filter(({ verdict }) => verdict !== 0);
  return { coverage: share(judged, ({ verdict }) => verdict !== 0), accuracy: share(decided, isRight) };
}

function accuracyAt(judged: readonly Judged[], coverage: number): number {
  const surest = judged.toSorted((a, b) => b.sureness - a.sureness);
  return share(surest.slice(0, Math.ceil(surest.length * coverage)), isRight);
}

function isRight({ turn, verdict }: Judged): boolean {
  return verdict === turn.label;
}

function share<T>(all: readonly T[], holds: (one: T) => boolean): number {
  return all.length === 0 ? 0 : all.filter((one) => holds(one)).length / all.length;
}
