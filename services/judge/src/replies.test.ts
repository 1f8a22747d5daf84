// Every written reply, given by a scripted model at an OpenAI-compatible address, through broker, queue and judge to the stored vote.
import { newId } from '@backtalk/kit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seedOf } from './domain/seeds.js';
import { JudgeRig } from './testing/judge-rig.js';
import { completion, startScriptedJudge, type ScriptedJudge } from './testing/scripted-judge.js';
import { writtenReplies } from './testing/written-replies.js';

const replies = writtenReplies();
const votes = 15;
const turns = Array.from({ length: Math.ceil(replies.length / votes) }, (_, at) => `turn_${newId()}_${at}`);
/** The seed of a vote tells which one it is. */
const bySeed = new Map(replies.map((reply, at) => [seedOf(turns[Math.floor(at / votes)] ?? '', at % votes), reply]));

let rig: JudgeRig;
let model: ScriptedJudge;

beforeAll(async () => {
  rig = await JudgeRig.start();
  model = await startScriptedJudge(({ seed }) => {
    const reply = bySeed.get(Number(seed));
    return { body: completion(reply?.message ?? { content: '' }, reply?.finish) };
  });
  await rig.judge({ votes, engineUrls: [model.url], engineDialect: 'openai', atLeastOne: 'off' });
});
afterAll(async () => {
  await rig.stop();
  await model.stop();
});

describe('replies of models', () => {
  it('written replies are 200 and more, of every form, and a third of them are no vote', () => {
    const forms = new Set(replies.map(({ form }) => form));
    expect(replies.length).toBeGreaterThanOrEqual(200);
    expect(forms.size).toBeGreaterThanOrEqual(15);
    expect(new Set(replies.map(({ id }) => id)).size).toBe(replies.length);
    expect(replies.filter(({ verdict }) => verdict === null).length / replies.length).toBeGreaterThan(1 / 3);
  });

  it('each is stored as the vote that it is, or as none', async () => {
    const user = newId();
    const stored: { verdict: number | null; hint: string }[] = [];
    for (const turn of turns) {
      const judged = await rig.untilJudged(await rig.turn([{ text: 'Shorter, please.' }], { turn, user }));
      stored.push(...judged.votes.map(({ valid, verdict, hint }) => ({ verdict: valid ? verdict : null, hint })));
    }
    const asRead = replies.map(({ id, form }, at) => ({ id, form, ...stored[at] }));
    expect(asRead).toEqual(replies.map(({ id, form, verdict, hint }) => ({ id, form, verdict, hint })));
  });
});
