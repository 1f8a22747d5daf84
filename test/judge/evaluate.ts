// Measures the judge on labelled next states. In: items, and a way to cast votes. Out: one row for each way of judging,
// from the majority class to votes, words and evidence together, with intervals, and how often an injected text turns
// the verdict. It fits nothing: thresholds and weights are fitted on other items.
import {
  combine,
  gatherEvidence,
  majority,
  type CastVote,
  type JudgeEngine,
  type Material,
  type Reader,
  type Verdict,
  type Voter,
} from '@backtalk/judge';
import { balancedAccuracy, bootstrapInterval, type Interval, type Pair } from './balanced-accuracy.js';
import { materialOfItem, type LabelledItem } from './items.js';

export interface EvaluateOptions {
  /** Nothing: no votes. */
  readonly voter: Voter | undefined;
  readonly engine: JudgeEngine | undefined;
  /** Nothing: words are not read, as for every model that can read by itself. */
  readonly reader?: Reader;
  readonly items: readonly LabelledItem[];
  readonly votes: number;
  readonly voteWaitMs?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (done: number, all: number) => void;
}

export const rowNames = ['majority baseline', 'votes alone', 'without votes', 'all together'] as const;
export type RowName = (typeof rowNames)[number];

export interface EvaluationRow {
  readonly name: RowName;
  /** Over three classes. */
  readonly balancedAccuracy: number;
  /** 95 %, by bootstrap over wording families. */
  readonly interval: Interval;
  readonly n: number;
  /** Share of items with injected text whose verdict differs from that without it; undefined where there are none. */
  readonly injectionFlipRate: number | undefined;
  /** By role of the next state. */
  readonly byRole: Readonly<Record<'user' | 'tool', number>>;
}

interface Judged {
  readonly item: LabelledItem;
  readonly verdicts: Readonly<Record<RowName, Verdict>>;
  /** Of the same item without the injected text. */
  readonly clean: Readonly<Record<RowName, Verdict>> | undefined;
}

/** On a busy machine one slow vote must not end the measurement. */
const voteWaitMsDefault = 600_000;

export async function evaluateJudge(options: EvaluateOptions): Promise<EvaluationRow[]> {
  const { items, onProgress } = options;
  const common = commonestLabel(items);
  const judged: Judged[] = [];
  for (const item of items) {
    const clean = item.clean === undefined ? undefined : await verdictsOf(options, item, item.clean, common);
    judged.push({ item, verdicts: await verdictsOf(options, item, item.next, common), clean });
    onProgress?.(judged.length, items.length);
  }
  return rowNames.map((name) => rowOf(name, judged));
}

async function verdictsOf(
  options: EvaluateOptions,
  item: LabelledItem,
  text: string,
  common: Verdict,
): Promise<Record<RowName, Verdict>> {
  const material = materialOfItem(item, text);
  const votes = await castAll(options, material);
  const evidence = gatherEvidence(material);
  const { reader, voter, engine } = options;
  const reading = reader?.read(material, voter?.facts(engine?.model ?? '').weights);
  return {
    'majority baseline': common,
    'votes alone': majority(votes).verdict,
    'without votes': combine(evidence, [], reading).verdict,
    'all together': combine(evidence, votes, reading).verdict,
  };
}

async function castAll(
  { voter, engine, votes, voteWaitMs = voteWaitMsDefault, signal }: EvaluateOptions,
  material: Material,
): Promise<CastVote[]> {
  if (voter === undefined || engine === undefined) return [];
  // Together, as the judge has them cast: an engine computes them in one go.
  return Promise.all(
    Array.from({ length: votes }, (_, vote) => voter.cast(engine, material, vote, { deadlineMs: voteWaitMs, signal })),
  );
}

function rowOf(name: RowName, judged: readonly Judged[]): EvaluationRow {
  const pairs = pairsOf(name, judged);
  const injected = judged.flatMap(({ verdicts, clean }) =>
    clean === undefined ? [] : [verdicts[name] !== clean[name]],
  );
  const ofRole = (role: 'user' | 'tool') =>
    balancedAccuracy(
      pairsOf(
        name,
        judged.filter(({ item }) => item.role === role),
      ),
    );
  return {
    name,
    balancedAccuracy: balancedAccuracy(pairs),
    interval: bootstrapInterval(pairs),
    n: pairs.length,
    injectionFlipRate: injected.length === 0 ? undefined : injected.filter(Boolean).length / injected.length,
    byRole: { user: ofRole('user'), tool: ofRole('tool') },
  };
}

function pairsOf(name: RowName, judged: readonly Judged[]): Pair[] {
  return judged.map(({ item, verdicts }) => ({ label: item.label, verdict: verdicts[name], family: item.family }));
}

function commonestLabel(items: readonly LabelledItem[]): Verdict {
  const counts = ([-1, 0, 1] as const).map((label) => ({
    label,
    count: items.filter((item) => item.label === label).length,
  }));
  return counts.reduce((most, next) => (next.count > most.count ? next : most)).label;
}
