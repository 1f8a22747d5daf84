import { clip, lastHumanMessage, oneLine, wordsIn } from '@backtalk/kit';
import { growth, hostileTexts } from '@backtalk/kit/testing';
import { Provenance } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { withoutAddressed } from './addressed.js';
import { readReply } from './free-reply.js';
import { freePrompt } from './free-vote.js';
import { chooseHint } from './hints/choose.js';
import { asHint, hindsightOfFeedback } from './hints/hindsight.js';
import { isSaidBy } from './hints/said-by.js';
import { hearing } from '../testing/hearing.js';
import type { Material } from './material.js';
import { readNextState, type NextState } from './next-state.js';
import { ownWords } from './own-words.js';
import { saidWords } from './said-words.js';
import { featuresOf } from './words/features.js';
import { toolEvidence } from './tool-evidence.js';

function material(next: NextState): Material {
  const place = { turn: 't', tenant: 'a', user: 'u', policy: 'p', session: 's' };
  const answer = next.text;
  return { place, conversation: [], question: answer, answer, thoughts: '', version: '', next };
}

const byUser = (text: string) => material({ role: 'user', text, userText: text, toolResults: [] });
const byTool = (text: string) =>
  material({ role: 'tool', text, userText: '', toolResults: [{ name: 'bash', text, isError: false }] });

const message = { provenance: Provenance.PROVENANCE_USER, toolCallId: '', toolName: '', isError: false };

const readers: readonly (readonly [string, (text: string) => unknown])[] = [
  ['ownWords', ownWords],
  ['saidWords', saidWords],
  ['withoutAddressed', (text) => withoutAddressed(clip(text, 16_384))],
  ['standingSentences', hearing.standing],
  ['readNextState', (text) => readNextState([{ ...message, text }])],
  ['wordsIn', wordsIn],
  ['lastHumanMessage', (text) => lastHumanMessage([{ role: 'user', content: text }])],
  ['asHint', asHint],
  ['hindsightOfFeedback', (text) => hindsightOfFeedback([text], true, hearing.standing)],
  ['the words of a user', (text) => featuresOf(byUser(text))],
  ['the words of a tool', (text) => featuresOf(byTool(text))],
  ['the evidence of a tool', (text) => toolEvidence({ name: 'bash', text, isError: false })],
  ['the evidence of its last line', (text) => toolEvidence({ name: 'bash', text: `x\n${text} =`, isError: false })],
  ['a free vote', (text) => freePrompt(byUser(text), { wording: 0, isForced: false, tokensMax: 4_000 })],
  ['the answer to a free vote', (text) => readReply({ text: `${text}\\boxed{1}`, isWhole: true })],
  ['chooseHint', (text) => chooseHint([text, 'Answer in one brief sentence.'], text, 'overlap')],
  ['isSaidBy', (text) => isSaidBy('Answer in one brief sentence.', text)],
  ['clip', (text) => oneLine(clip(text, 100))],
];

describe('a megabyte that was written to stall its reader', () => {
  it.each(readers)('%s does work in proportion to the length of any text', (_name, read) => {
    for (const [piece, make] of hostileTexts) expect(growth(read, make), JSON.stringify(piece)).toBeLessThan(4);
  });
});
