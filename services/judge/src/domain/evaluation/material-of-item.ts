// A labelled item as the judge would meet it. In: an item of the labelled set. Out: the material of a judgement.
import type { Material } from '../material.js';
import type { NextState } from '../next-state.js';
import type { LabelledItem } from '../labelled-item.js';

export function materialOfItem(item: LabelledItem, text: string = item.next): Material {
  return {
    place: { turn: item.id, tenant: 'labelled', user: 'labelled', policy: 'labelled', session: 'labelled' },
    conversation: [{ role: 'user', text: item.question }],
    question: item.question,
    answer: item.answer,
    thoughts: '',
    version: '',
    next: nextOf(item, text),
  };
}

function nextOf({ role, tool = '' }: LabelledItem, text: string): NextState {
  if (role === 'user') return { role, text, userText: text, toolResults: [] };
  return { role, text, userText: '', toolResults: [{ name: tool, text }] };
}
