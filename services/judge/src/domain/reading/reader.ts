// Reads a next state by its words. In: the labelled next states it learns from, and the weights for judging without
// votes. Out: for a next state, what its words say and how that is weighed. Pure.
import type { LabelledItem } from '../labelled-item.js';
import { materialOfItem } from '../evaluation/material-of-item.js';
import { verdictFrom, labels } from '../scored/wordings.js';
import type { EvidenceVote, Reading } from '../verdict.js';
import { featuresOf, type Read } from './features.js';
import type { RoleWeights } from './pool.js';
import { fitWordModel, type WordModel } from './word-model.js';

export interface Reader {
  read(read: Read, withVotes: RoleWeights | undefined): Reading;
}

/** A person's words and a tool's are two languages. */
export function createReader(items: readonly LabelledItem[], withoutVotes: RoleWeights): Reader {
  const models = { user: learn(items, 'user'), tool: learn(items, 'tool') };
  return {
    read: (read, withVotes) => {
      const role = read.next.role === 'user' ? 'user' : 'tool';
      return {
        words: models[role].logprobs(featuresOf(read)),
        withVotes: withVotes?.[role],
        withoutVotes: withoutVotes[role],
        evidenceDecides: role === 'tool',
      };
    },
  };
}

/** The record of what the words say by themselves. */
export function wordsVote({ words }: Reading): EvidenceVote {
  const best = labels.reduce((most, label) => (words[label] > words[most] ? label : most));
  return { name: 'words', verdict: verdictFrom[best], detail: 'learned' };
}

function learn(items: readonly LabelledItem[], role: LabelledItem['role']): WordModel {
  const own = items.filter((item) => item.role === role);
  return fitWordModel(own.map((item) => ({ features: featuresOf(materialOfItem(item)), label: item.label })));
}
