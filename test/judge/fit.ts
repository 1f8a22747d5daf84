// Fits how the judge weighs words. In: labelled turns, never those of the part `test`. Out: what words say of each source that were
// learned from all others, and the weights that follow from it.
import { featuresOf, wordLikelihoods, type Likelihoods, type RoleWeights, type WordTable } from '@backtalk/judge';
import { fitWeighing } from './fit-weighing.js';
import { fitWords } from './fit-words.js';
import { grouped } from './items.js';
import type { Sample } from './sources.js';

/** Of each source, what words say of it that were learned from all others. */
type UnseenWords = ReadonlyMap<Sample, Likelihoods>;

export function readUnseen(samples: readonly Sample[]): { words: UnseenWords; tables: ReadonlyMap<string, WordTable> } {
  const words = new Map<Sample, Likelihoods>();
  const tables = new Map<string, WordTable>();
  for (const [source, own] of grouped(samples, (sample) => sample.source)) {
    const table = fitWords(samples.filter((sample) => sample.source !== source));
    tables.set(source, table);
    for (const sample of own) {
      if (sample.material === undefined) continue;
      words.set(sample, wordLikelihoods(table[roleOf(sample)], featuresOf(sample.material)));
    }
  }
  return { words, tables };
}

/** With words that were learned from other sources only. */
export function fitWeights(words: UnseenWords): RoleWeights {
  const ofRole = (role: 'user' | 'tool') =>
    fitWeighing(
      [...words].filter(([sample]) => roleOf(sample) === role).map(([{ label }, said]) => ({ label, words: said })),
    );
  return { user: ofRole('user'), tool: ofRole('tool') };
}

function roleOf({ material }: Sample): 'user' | 'tool' {
  return material?.next.role === 'user' ? 'user' : 'tool';
}
