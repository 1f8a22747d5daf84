import { FeedbackGiven } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { hearing } from '../testing/hearing.js';
import { judgeFeedback } from './feedback.js';
import { judge } from './judgement.js';
import type { Material } from './material.js';
import type { NextState } from './next-state.js';
import { gatherEvidence } from './evidence.js';
import { combine, evidenceVerdict, majority, meanVote, type CastVote, type EvidenceVote } from './verdict.js';
import type { Verdict } from './verdict-value.js';

const valid = (verdict: Verdict): CastVote => ({ valid: true, verdict, hint: '', seed: 1 });
const failed: CastVote = { valid: false, reason: 'timeout', seed: 1 };
const piece = (name: EvidenceVote['name'], verdict: Verdict): EvidenceVote => ({ name, verdict, detail: '' });

describe('majority', () => {
  it('takes what most valid votes say, with the share that says so', () => {
    expect(majority([valid(1), valid(1), valid(-1), failed])).toEqual({ verdict: 1, confidence: 2 / 3 });
  });

  it('gives 0 for a tie, and without any valid vote', () => {
    expect(majority([valid(1), valid(-1)])).toEqual({ verdict: 0, confidence: 0.5 });
    expect(majority([valid(1), valid(0), valid(-1)]).verdict).toBe(0);
    expect(majority([failed, failed])).toEqual({ verdict: 0, confidence: 0 });
  });
});

describe('evidence', () => {
  it('takes pieces of evidence that contradict each other for none', () => {
    expect(evidenceVerdict([])).toBeUndefined();
    expect(evidenceVerdict([piece('exit_code', 1), piece('test_verdict', -1)])).toBeUndefined();
    expect(evidenceVerdict([piece('exit_code', -1), piece('test_verdict', -1)])).toBe(-1);
  });

  it('lets the fields of a tool decide against all votes', () => {
    const votes = [valid(1), valid(1), valid(-1)];
    expect(combine([piece('exit_code', -1)], votes)).toEqual({ verdict: -1, confidence: 1 / 3, restsOn: 'evidence' });
    const reading = {
      words: piece('words', 1),
      verdict: 1 as const,
      odds: { satisfied: 0, unrelated: 0, correction: 0 },
    };
    expect(combine([piece('exit_code', -1)], votes, reading).verdict).toBe(-1);
  });
});

describe('a judge that reads', () => {
  const place = { turn: 't', tenant: 'a', user: 'u', policy: 'p', session: 's' };
  const mark = { model: 'large', promptDigest: 'd' };
  const judged = (next: NextState, votes: readonly CastVote[]) => {
    const material: Material = {
      place,
      conversation: [],
      question: 'Is the build green?',
      answer: 'It is.',
      thoughts: '',
      version: '',
      next,
    };
    return judge(material, votes, { evidence: gatherEvidence(material) }, mark, hearing);
  };
  const said = (text: string): NextState => ({ role: 'user', text, userText: text, toolResults: [] });
  const ran = (text: string): NextState => ({
    role: 'tool',
    text,
    userText: '',
    toolResults: [{ name: 'run', text, isError: false }],
  });

  it.each(['Oh great, now the build is red.', 'Nice try.', 'Great, it deleted my files.', 'Thanks for nothing.'])(
    'lets no phrase outvote the judge on "%s"',
    (text) => {
      expect(judged(said(text), [valid(-1), valid(-1), valid(-1)]).outcome).toEqual({
        verdict: -1,
        confidence: 1,
        restsOn: 'votes',
      });
      expect(judged(said(text), [valid(1), valid(1), valid(0)]).outcome.verdict).toBe(1);
    },
  );

  it('judges no words without a vote', () => {
    expect(judged(said('Perfect, thank you!'), []).outcome).toEqual({ verdict: 0, confidence: 0, restsOn: 'evidence' });
  });

  it('puts the fields of a tool above votes, and explicit feedback above both', () => {
    const { message } = judged(ran('{"exit_code": 1}'), [valid(1), valid(1), valid(1)]);
    expect(message.verdict).toBe(-1);
    const feedback = FeedbackGiven.fromPartial({ ...place, digest: 'x', hasScore: true, score: 1 });
    const { standing } = hearing;
    const beside = { next: undefined, standing, read: () => 0 as const };
    const parts = { ...beside, feedback, before: message, session: 's', revision: 1 };
    expect(judgeFeedback(parts).message.verdict).toBe(1);
    const worse = { ...parts, feedback: { ...feedback, score: -1 }, before: { ...message, verdict: 1 } };
    expect(judgeFeedback(worse).message).toMatchObject({ verdict: -1, revision: 1 });
  });
});

describe('meanVote', () => {
  it('leaves null votes out of the mean', () => {
    expect(meanVote([valid(1), valid(0), failed])).toBe(0.5);
    expect(meanVote([failed])).toBe(0);
  });
});
