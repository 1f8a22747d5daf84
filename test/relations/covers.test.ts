import { createEngineClient, dialectNamed, type EngineClient } from '@backtalk/dialects';
import { until } from '@backtalk/kit/testing';
import { Lesson, Lesson_State } from '@backtalk/proto/facts';
import { recurring, withCovers, type WishEffects } from '@backtalk/trainer/lesson-cover';
import { MeasuredEffects } from '@backtalk/trainer/measured-effects';
import { recipePresets } from '@backtalk/trainer/recipe';
import { decodePlan, planOf } from '@backtalk/trainer/step-plan';
import { relateByWords } from '@backtalk/trainer/wishes';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { baseName, startBuiltin, type RunningEngine } from '../contracts/engines.js';

const numbered = [
  'Please always answer as a numbered list.',
  'Number the steps.',
  '1., 2., 3. before each of the points.',
];
const emoji = ['Always put an emoji at the very end.', 'Finish with an emoji, the answers look so bare.'];

const wishes = [...numbered, ...emoji];

const patienceMs = 480_000;

const plan = decodePlan(planOf(recipePresets.tiny.recipe).bytes);
const decoder = new TextDecoder();
const message = z.object({ role: z.literal('user'), content: z.string() });

let running: RunningEngine;
let engine: EngineClient;

let measured: WishEffects;

beforeAll(async () => {
  running = await startBuiltin();
  engine = createEngineClient({ url: running.url, dialect: dialectNamed('vllm') });
  if (plan === undefined) expect.unreachable();
  const serving = [{ url: running.url, client: engine }];
  const effects = new MeasuredEffects({ base: () => baseName, use: (_base, _wanted, work) => work(serving) });
  // A busy machine may need longer than a batch waits; what is known then is kept for the next.
  const measure = () =>
    effects.among([{ words: wishes, inForce: numbered }], plan, AbortSignal.timeout(patienceMs)).catch(() => undefined);
  measured = await until(measure, { what: 'What the wishes do', timeoutMs: patienceMs, everyMs: 100 });
}, patienceMs);

afterAll(async () => {
  await engine?.close();
  await running?.stop();
});

const { STATE_ACTIVE, STATE_HEARD } = Lesson_State;
const lesson = (text: string, session: string, state = STATE_ACTIVE) =>
  Lesson.fromPartial({ id: text, text, state, session });

describe('wishes that the laptop model takes for one', () => {
  it('wordings of one wish share one that is shown, and another wish keeps its own', () => {
    const lessons = [...numbered, ...emoji].map((text) => lesson(text, text));
    const covered = withCovers(lessons, [lessons.toReversed()], measured, relateByWords);
    const covers = new Map(covered.map(({ id, coveredBy }) => [id, coveredBy]));
    const shownOf = (wordings: readonly string[]) => new Set(wordings.map((text) => covers.get(text) || text));
    expect(shownOf(numbered).size).toBe(1);
    expect(shownOf(emoji).size).toBe(1);
    expect([...shownOf(numbered)]).not.toEqual([...shownOf(emoji)]);
  });

  it('answers to one question are likelier after it than after another, whatever wish is shown with it', () => {
    for (const wish of [...numbered, ...emoji]) expect(measured.matter(wish), wish).toBeGreaterThan(2);
  });

  it('a wish’s effect is what it adds, nats an answer, to what the base samples when it is shown it', async () => {
    const [wish = ''] = numbered;
    const options = { deadlineMs: patienceMs, signal: AbortSignal.timeout(patienceMs) };
    const questions = (plan?.probePrompts ?? []).map(
      (bytes) => z.tuple([message]).parse(JSON.parse(decoder.decode(bytes)))[0],
    );
    expect(questions).toHaveLength(4);
    const gains: number[] = [];
    for (const { content } of questions) {
      const promptOf = (said: string) =>
        engine.tokenize({ model: baseName, messages: [{ role: 'user', content: said }] }, options);
      const [shown, plain] = [await promptOf(`${content}\n\n${wish}`), await promptOf(content)];
      for (const seed of [1, 2]) {
        const asked = { model: baseName, prompt: shown, maxTokens: 24, temperature: 0.8, seed };
        const [answer] = await engine.completions(asked, options);
        const answerIds = answer?.ids ?? [];
        const items = [shown, plain].map((promptIds) => ({ promptIds, answerIds }));
        const [after, without] = await engine.score(items, { model: baseName, ...options });
        for (const [at, logprob] of (after ?? []).entries()) gains.push(logprob - (without?.[at] ?? 0));
      }
    }
    const mean = gains.reduce((sum, gain) => sum + gain, 0) / 8;
    expect(mean).toBeGreaterThan(2);
    expect(measured.effect(wish)).toBeCloseTo(mean, 2);
    // Of what is not in force it is not asked.
    expect(emoji.map((other) => measured.effect(other))).toEqual([undefined, undefined]);
  });

  it('a wish that a second session brings in other words recurs, and one that came once does not', () => {
    const [, first, again] = numbered;
    const [other] = emoji;
    if (first === undefined || again === undefined || other === undefined) expect.unreachable();
    expect(relateByWords(first, again)).toBe('different');
    const heardIn = (session: string, text: string) => ({
      ...lesson(text, session, STATE_HEARD),
      cases: [{ turn: session, tenant: 't', user: 'u' }],
    });
    const heard = [heardIn('s3', again), heardIn('s2', other), heardIn('s1', first)];
    const asked = new Map([
      ['s1', 'How do I bake bread?'],
      ['s2', 'Who painted that?'],
      ['s3', 'What is a glacier?'],
    ]);
    expect(
      recurring([heard], measured, relateByWords, { questions: asked, heard: [again] }).map(({ id }) => id),
    ).toEqual([again]);
  });
});
