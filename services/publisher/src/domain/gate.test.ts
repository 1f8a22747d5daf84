import { engineErrors } from '@backtalk/dialects';
import type { Probe } from '@backtalk/proto/weights';
import { describe, expect, it } from 'vitest';
import { burnsVersion, driftOf, judgeCandidate, parityOf, type GateInput } from './gate.js';

const probe = (logprobs: number[]): Probe => ({
  promptIds: [1, 2],
  answerIds: logprobs.map((_, at) => at),
  logprobs,
  baseLogprobs: [],
  toldLogprobs: [],
});

const input: GateInput = {
  probes: [probe([-1, -2]), probe([-3, -4])],
  candidate: [
    [-1, -2.5],
    [-3, -4.5],
  ],
  base: [
    [-1, -2.5],
    [-3, -4.5],
  ],
};
const limits = { parityMax: 0.3, driftMax: 1 };

describe('parity', () => {
  it('measures parity as the mean over all tokens of the absolute difference', () => {
    expect(parityOf(input)).toBeCloseTo(0.25);
  });

  it('refuses a candidate whose logprobs are left out', () => {
    const silent = { ...input, probes: input.probes.map((one) => ({ ...one, logprobs: [] })) };
    expect(judgeCandidate(silent, limits).why).toContain('parity');
    expect(judgeCandidate({ ...input, candidate: [[-1], [-3, -4.5]] }, limits).why).toContain('parity');
  });
});

describe('drift', () => {
  it('estimates a drift that is 0 for the base itself, and has the mean of the KL', () => {
    expect(driftOf(input)).toBe(0);
    // Two tokens, π = (.5, .5), π_base = (.25, .75): the mean over samples of π is the KL.
    const estimate = (candidate: number, base: number) =>
      driftOf({ probes: [probe([candidate])], candidate: [[candidate]], base: [[base]] });
    const half = Math.log(0.5);
    const mean = 0.5 * estimate(half, Math.log(0.25)) + 0.5 * estimate(half, Math.log(0.75));
    const kl = 0.5 * Math.log(0.5 / 0.25) + 0.5 * Math.log(0.5 / 0.75);
    expect(mean).toBeCloseTo(kl, 12);
  });

  it('a token that the candidate seldom says and the base often is no drift', () => {
    // As measured: one such token among 64 burned a version that had learned what it was taught.
    const [seldom, often] = [[-8.25], [-2.73]];
    expect(driftOf({ probes: [probe(seldom)], candidate: [seldom], base: [often] })).toBeLessThan(0);
  });

  it('keeps the drift finite for what is very far', () => {
    expect(driftOf({ probes: [probe([-1])], candidate: [[-1]], base: [[-Infinity]] })).toBe(20);
  });
});

describe('judgeCandidate', () => {
  it('passes what is within both bounds, and says what it measured', () => {
    const verdict = judgeCandidate(input, limits);
    expect(verdict).toEqual({
      why: '',
      measurements: { parity_mean_abs: 0.25, drift_kl: 0, drift_told_kl: 0, probes: 2 },
    });
  });

  it('names the bound that a refused candidate passed', () => {
    expect(judgeCandidate(input, { ...limits, parityMax: 0.2 }).why).toContain('parity');
    const far = { ...input, base: input.base.map((list) => list.map((logprob) => logprob - 3)) };
    expect(judgeCandidate(far, limits).why).toContain('drift');
    expect(judgeCandidate({ probes: [], candidate: [], base: [] }, limits).why).toContain('no_probes');
  });

  it('passes what is far from the base in the places where the base that is shown the lessons says it too', () => {
    const start = { ...probe([-0.1, -2]), toldLogprobs: [-0.1, -2] };
    const named = { probes: [start], candidate: [[-0.1, -2]], base: [[-15, -2]] };
    const { why, measurements } = judgeCandidate(named, limits);
    expect(why).toBe('');
    expect(measurements['drift_kl']).toBeCloseTo(14.9, 5);
    expect(measurements['drift_told_kl']).toBeCloseTo(Math.log(2), 5);
    const elsewhere = { ...start, toldLogprobs: [-15, -2] };
    expect(judgeCandidate({ ...named, probes: [elsewhere] }, limits).why).toContain('drift');
    expect(judgeCandidate({ ...named, probes: [{ ...start, toldLogprobs: [] }] }, limits).why).toContain('drift');
  });
});

describe('burnsVersion', () => {
  it.each([
    ['refuses the adapter', engineErrors.adapterRefused({ name: 'backtalk-v1', engineStatus: 400 }), true],
    ['refuses the probes', engineErrors.invalidRequest({}), true],
    ['forgot the version', engineErrors.modelNotFound({ model: 'backtalk-v1' }), false],
    ['cannot do this at all', engineErrors.unsupported({ what: '/v1/completions', dialect: 'vllm' }), false],
    ['was asked by one that stops', engineErrors.aborted({}), false],
    ['breaks off', engineErrors.failed({ engineStatus: 500 }), false],
    ['cannot be reached', engineErrors.unreachable({ why: 'ECONNREFUSED' }), false],
  ])('tells refusals of the weights from other failures: an engine that %s', (_, error, burns) => {
    expect(burnsVersion(error)).toBe(burns);
  });
});
