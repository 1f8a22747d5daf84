// Everything but votes and words that stands beside a judgement, by name. In: what a judgement is about. Out: what tools say in their
// fields, and what the person did: refused a call, had the answer made again, stopped it. Pure.
import type { Material } from './material.js';
import { refusalIn } from './refusals.js';
import { toolEvidence } from './tool-evidence.js';
import type { EvidenceVote } from './verdict.js';

export function gatherEvidence({ next, act, ending }: Pick<Material, 'next' | 'act' | 'ending'>): EvidenceVote[] {
  if (ending === 'stopped') return [{ name: 'stopped', verdict: 0, detail: '' }, ...ofNextState(next)];
  // An answer that failed was asked for again because it failed.
  if (act === 'regenerated' && ending !== 'failed') return [{ name: 'regenerated', verdict: -1, detail: '' }];
  return ofNextState(next);
}

/**
 * What tools said is no evidence once a person has spoken: the person judges what tools did, too. A call that they refused is their
 * own word. Of parallel calls each speaks; one failure makes the step a failure.
 */
function ofNextState({ role, toolResults }: Material['next']): EvidenceVote[] {
  const read = role === 'user' ? refusalsIn : toolEvidence;
  const votes = toolResults.flatMap((result) => read(result));
  const failures = votes.filter(({ verdict }) => verdict === -1);
  return failures.length > 0 ? failures : votes;
}

function refusalsIn({ text }: { readonly text: string }): EvidenceVote[] {
  const refused = refusalIn(text);
  return refused === undefined ? [] : [refused];
}
