// All evidence in one next state. In: the next state, the question and its answer. Out: evidence votes by name.
import type { NextState } from '../next-state.js';
import type { EvidenceVote } from '../verdict.js';
import { followUp } from './follow-up.js';
import { repeatedRequest } from './repeated-request.js';
import { toolEvidence } from './tool-fields.js';
import { wordingEvidence } from './wording.js';

/** What tools said is not evidence once a person has spoken: the person judges what tools did, too. */
export function gatherEvidence(next: NextState, question: string, answer: string): EvidenceVote[] {
  if (next.role !== 'user') return fromTools(next);
  const { userText } = next;
  const words = wordingEvidence(userText) ?? followUp(question, answer, userText);
  const found = [words, repeatedRequest(question, userText)];
  return found.filter((vote) => vote !== undefined);
}

/** Of parallel calls each speaks; one failure makes the step a failure. */
function fromTools({ toolResults }: NextState): EvidenceVote[] {
  const votes = toolResults.flatMap((result) => toolEvidence(result));
  const failures = votes.filter(({ verdict }) => verdict === -1);
  return failures.length > 0 ? failures : votes;
}
