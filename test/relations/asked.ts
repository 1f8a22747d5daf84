// How a model that reads relates labelled pairs, asked as the trainer asks it. In: pairs, and the model. Out: what it says where it answers,
// and words elsewhere; and how many requests came to what.
import type { AskedEngine } from '@backtalk/dialects';
import { AskedRelations } from '@backtalk/trainer/asked-relations';
import type { relateByWords } from '@backtalk/trainer/wishes';

import type { LabelledPair } from './measure.js';

/** As many as one request of the trainer holds. */
const besideMax = 32;

interface Asked {
  readonly relate: typeof relateByWords;
  readonly outcomes: Readonly<Record<string, number>>;
}

export async function askAbout(pairs: readonly LabelledPair[], engine: AskedEngine): Promise<Asked> {
  const outcomes: Record<string, number> = {};
  const count = (outcome: string) => void (outcomes[outcome] = (outcomes[outcome] ?? 0) + 1);
  const relations = new AskedRelations(
    { lastModel: engine.model, use: (_options, work) => work({ url: '', client: engine.client, model: engine.model }) },
    { wishRead: () => count('read'), wishesLeftToWords: count, judgeFieldsRefused: () => count('fields refused') },
  );
  const { signal } = new AbortController();
  for (const text of new Set(pairs.map(({ a }) => a))) {
    const others = pairs.flatMap(({ a, b }) => (a === text ? [b] : []));
    for (let from = 0; from < others.length; from += besideMax)
      await relations.among([{ text, beside: others.slice(from, from + besideMax) }], signal);
  }
  // What was asked is remembered.
  return { relate: await relations.among([], signal), outcomes };
}
