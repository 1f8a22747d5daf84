import { describe, expect, it } from 'vitest';
import { combine, evidenceVerdict, majority, meanVote, type CastVote, type EvidenceVote } from './verdict.js';
import type { Verdict } from './verdict-value.js';

const valid = (verdict: Verdict): CastVote => ({ valid: true, verdict, score: verdict, hint: '', seed: 1 });
const failed: CastVote = { valid: false, reason: 'timeout', seed: 1 };
const piece = (name: EvidenceVote['name'], verdict: Verdict): EvidenceVote => ({ name, verdict, detail: '' });

describe('majority', () => {
  it('takes what most valid votes say, with the share that says so', () => {
    expect(majority([valid(1), valid(1), valid(-1), failed])).toEqual({ verdict: 1, confidence: 2 / 3 });
  });

  it('is 0 for a tie, and without any valid vote', () => {
    expect(majority([valid(1), valid(-1)])).toEqual({ verdict: 0, confidence: 0.5 });
    expect(majority([valid(1), valid(0), valid(-1)]).verdict).toBe(0);
    expect(majority([failed, failed])).toEqual({ verdict: 0, confidence: 0 });
  });
});

describe('evidence', () => {
  it('is silent where pieces contradict each other, and prefers structure to wording', () => {
    expect(evidenceVerdict([])).toBeUndefined();
    expect(evidenceVerdict([piece('exit_code', 1), piece('test_verdict', -1)])).toBeUndefined();
    expect(evidenceVerdict([piece('regenerated', -1), piece('wording', 1)])).toBe(-1);
  });

  it('decides where it speaks, and leaves the rest to the votes', () => {
    expect(combine([piece('wording', -1)], [valid(1), valid(1), valid(-1)])).toEqual({
      verdict: -1,
      confidence: 1 / 3,
      restsOn: 'evidence',
    });
    expect(combine([], [valid(1), valid(1), valid(-1)])).toMatchObject({ verdict: 1, restsOn: 'votes' });
  });
});

describe('meanVote', () => {
  it('leaves out votes that are not valid', () => {
    expect(meanVote([valid(1), valid(0), failed])).toBe(0.5);
    expect(meanVote([failed])).toBe(0);
  });
});
