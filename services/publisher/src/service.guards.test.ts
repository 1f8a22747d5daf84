// Guards that look at what versions answer, through a real publisher: a candidate that drifts is held, and what serves is rolled back.
import { until } from '@backtalk/kit/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SwapRig } from './testing/swap-rig.js';

let rig: SwapRig;

beforeEach(async () => {
  rig = await SwapRig.start();
  await rig.startLoader();
});

afterEach(() => rig.stop());

describe('a candidate that drifts', () => {
  it.each([
    ['surer', 0.15],
    ['less sure', 6],
  ])('a candidate is held when its answers are far %s than those of what serves', async (_, factor) => {
    await rig.startPublisher();
    await rig.release(1);
    rig.engine.settings.surprise = (model) => (model === 'backtalk-v2' ? factor : 1);
    await rig.train(2);
    const { why, measurements } = await rig.burned(2);
    expect(why).toMatch(/^entropy: .* of backtalk-v1 \(bound 5 times\)$/);
    expect(measurements['answer_entropy']).toBeGreaterThan(0);
    expect((await rig.routes())?.stable).toBe('backtalk-v1');
  });

  it('a candidate is held when its answers have far less entropy than the base’s, though no single step was large', async () => {
    await rig.startPublisher();
    const factors = new Map([
      ['backtalk-v1', 0.5],
      ['backtalk-v2', 0.15],
    ]);
    rig.engine.settings.surprise = (model) => factors.get(model) ?? 1;
    await rig.release(1);
    await rig.train(2);
    expect((await rig.burned(2)).why).toMatch(/^entropy: .* of backtalk-v0 /);
  });

  it('a candidate is held when its answers are far shorter than those of what serves; a step at a time they may become so', async () => {
    await rig.startPublisher();
    rig.engine.settings.answerTokens = 20;
    await rig.release(1);
    rig.engine.settings.answerTokens = 4;
    await rig.train(2);
    expect((await rig.burned(2)).why).toMatch(/^length: 4\.00 tokens an answer, beside 20\.0 of backtalk-v1 /);
    rig.engine.settings.answerTokens = 8;
    await rig.train(3, { parent: 'backtalk-v1' });
    await rig.stableIs(3);
    rig.engine.settings.answerTokens = 4;
    await rig.train(4);
    await rig.stableIs(4);
  });
});

describe('what serves', () => {
  it('a version that serves is rolled back when a step finds that its answers have lost their entropy, and what was trained from it is burned', async () => {
    const gateway = await rig.startGateway();
    const publisher = await rig.startPublisher();
    const burned = () => rig.metric(publisher, /versions_total\{policy="backtalk",stage="burned"/);
    expect(await burned()).toBe(0);
    await rig.release(1, 2);
    await rig.train(3, {}, { entropy_ratio: 0.05 });
    expect((await rig.burned(2)).why).toMatch(/^served_entropy: 0\.0500 /);
    expect((await rig.burned(3)).why).toContain('parent_burned');
    await until(() => gateway.commits.at(-1)?.stable === 'backtalk-v1');
    // What is rolled back served once.
    expect(await burned()).toBe(1);
    expect(await rig.metric(publisher, /rollbacks_total\{by="served_entropy"/)).toBe(1);
    await rig.train(4, { parent: 'backtalk-v1' }, { entropy_ratio: 0.2 });
    await rig.stableIs(4);
  });
});
