// Measures how the judge reads labelled next states without any vote. In: items. Out: one row for each way of judging, the majority
// class and words with the fields of tools, with intervals, and how often an injected text turns the verdict. It fits nothing: weights are
// fitted on other items.
import { combine, gatherEvidence, type Reader, type Verdict } from '@backtalk/judge';
import { balancedAccuracy, bootstrapInterval, type Interval, type Pair } from './balanced-accuracy.js';
import { materialOfItem, type LabelledItem } from './items.js';

export interface EvaluateOptions {
  /** Nothing: words are not read. */
  readonly reader?: Reader;
  readonly items: readonly LabelledItem[];
  readonly onProgress?: (done: number, all: number) => void;
}

export const rowNames = ['majority baseline', 'without votes'] as const;
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

export function evaluateJudge({ reader, items, onProgress }: EvaluateOptions): EvaluationRow[] {
  const common = commonestLabel(items);
  const verdictsOf = (item: LabelledItem, text: string): Judged['verdicts'] => {
    const material = materialOfItem(item, text);
    const { verdict } = combine(gatherEvidence(material), [], reader?.read(material));
    return { 'majority baseline': common, 'without votes': verdict };
  };
  const judged = items.map((item, at): Judged => {
    const clean = item.clean === undefined ? undefined : verdictsOf(item, item.clean);
    const verdicts = verdictsOf(item, item.next);
    onProgress?.(at + 1, items.length);
    return { item, verdicts, clean };
  });
  return rowNames.map((name) => rowOf(name, judged));
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
