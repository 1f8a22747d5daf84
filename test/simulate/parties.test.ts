import { writeFileSync } from 'node:fs';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { callsLine, openParties, type PartyFlags } from './parties.js';
import { says, startScriptedModel, type ScriptedModel } from './testing/scripted-model.js';

const directory = new TemporaryDirectory('parties');
let player: ScriptedModel;
let reader: ScriptedModel;
let said: string[];
const output = {
  json: false,
  line: () => undefined,
  piece: () => undefined,
  table: () => undefined,
  value: () => undefined,
  progress: () => ({ update: () => undefined, stop: () => undefined }),
  complain: (text: string) => {
    said.push(text);
  },
};

beforeAll(async () => {
  player = await startScriptedModel('player', () => says({ satisfied: false, words: 'too stiff' }));
  reader = await startScriptedModel('reader', () => says({ answers: true, score: 0.5 }));
});
beforeEach(() => {
  said = [];
});
afterAll(async () => {
  directory.remove();
  await player.stop();
  await reader.stop();
});

const open = (flags: Partial<PartyFlags>) => openParties({ seed: 1, ...flags }, new AbortController().signal, output);

describe('who talks and who scores', () => {
  it('a persona is played by one model and scored by another, and it is said where both are', async () => {
    const parties = await open({ persona: 'student', llmUrl: player.url, scorerUrl: reader.url });
    const task = parties.user.question();
    const before = [{ role: 'user', content: task }] as const;
    expect(await parties.user.react(task, { text: '**4**', ended: true }, before)).toEqual({
      kind: 'correct',
      words: 'too stiff',
    });
    const answers = parties.heldOut.map((question) => ({ question, answer: 'it is four', ended: true }));
    expect(await parties.scorer?.score(answers)).toMatchObject({ headline: 0.5 });
    expect(parties.usual).toEqual({ turns: 4, maxTokens: 512 });
    expect(parties.models.scorer?.counts).toMatchObject({ replies: 32 });
    expect(said).toEqual([
      `player at ${player.url} plays the user; what is said in the run is sent there`,
      `reader at ${reader.url} scores; what is said in the run is sent there`,
    ]);
    await parties.stop();
  });

  it('a user with a rule is scored by a model where one is named, and a persona only talks where no question is asked', async () => {
    const ruled = await open({ user: 'name', scorerUrl: reader.url });
    expect(await ruled.scorer?.score([{ question: 'How?', answer: 'Tobias, so.', ended: true }])).toMatchObject({
      obeys: 0.5,
    });
    expect(reader.heard.at(-1)?.messages[0]?.content).toContain(ruled.wish);
    await ruled.stop();
    const talking = await open({ persona: 'ta', llmUrl: player.url, questions: 0 });
    expect(talking.scorer).toBeUndefined();
    await talking.stop();
  });

  it('a model that scores reads as few answers as it is given', async () => {
    const parties = await open({ user: 'name', scorerUrl: reader.url, questions: 3 });
    expect(parties.scorer).toBeDefined();
    await parties.stop();
  });

  it('one model does not play and score, unless it is said that it may', async () => {
    const flags = { persona: 'teacher', llmUrl: player.url, scorerUrl: player.url };
    await expect(open(flags)).rejects.toMatchObject({ code: 'bad_argument' });
    await expect(open(flags)).rejects.toThrow(
      /^--scorer-model 'player' is not another model than the user's[^\n]+--same-model/,
    );
    await (await open({ ...flags, sameModel: true })).stop();
  });

  it('a user is measured with all questions that it has, 32 at most, and few are said to make it easier', async () => {
    const persona = 'student';
    const whole = await open({ persona, llmUrl: player.url, scorerUrl: reader.url });
    expect(whole.heldOut).toHaveLength(32);
    expect(said.join('\n')).not.toContain('easier');
    const file = directory.join('few.json');
    const questions = { train: ['Why?'], heldout: ['Where?', 'When?'] };
    const rule = { violates_if: [{ op: 'words_over', max: 9 }] };
    const user = {
      wish: 'Be brief.',
      rule,
      corrections: ['shorter'],
      satisfied: ['thanks'],
      follow_ups: [],
      complaints: [],
      questions,
    };
    writeFileSync(file, JSON.stringify(user));
    const few = await open({ user: file });
    await few.stop();
    expect(few.heldOut).toEqual(['Where?', 'When?']);
    expect(said.join('\n')).toContain('this user has 2 held-out questions');
  });

  it.each<[Partial<PartyFlags>, RegExp]>([
    [{ persona: 'student' }, /^--persona 'student' is not usable without --llm-url/],
    [{ persona: 'student', llmUrl: 'http://h/v1' }, /^--persona 'student' is not usable without --scorer-url/],
    [{ persona: 'student', user: 'short', llmUrl: 'http://h/v1' }, /^--user 'short' is not usable beside --persona/],
    [{ llmUrl: 'http://me:secret@h/v1' }, /^--llm-url '…' is not usable without --persona/],
    [
      { user: 'name', questions: 64 },
      /^--questions '64' is not a multiple of 32 and at most the 32 different held-out questions of this user/,
    ],
    [{ user: 'name', questions: 20 }, /^--questions '20' is not a multiple of 32/],
    [
      { persona: 'student', llmUrl: 'http://h/v1', scorerUrl: 'http://h/v1', questions: 33 },
      /^--questions '33' is not at most the 32/,
    ],
    [{ user: 'short', llmModel: 'player' }, /^--llm-model 'player' is not usable without --llm-url/],
  ])('flags that say half of it are wrong use, before anything is asked (%#)', async (flags, words) => {
    await expect(open(flags)).rejects.toMatchObject({ code: 'bad_argument' });
    await expect(open(flags)).rejects.toThrow(words);
  });

  it('a persona that is no file is refused before its model is asked', async () => {
    const flags = { persona: 'rumpelstiltskin', llmUrl: player.url, scorerUrl: reader.url };
    await expect(open(flags)).rejects.toThrow(/no file to read/);
    expect(said).toEqual([]);
  });
});

it('the calls to a model are told in one line, with what could not be used', () => {
  const counts = { replies: 9, retries: 2, failed: 1, empty: 0, refusal: 1, overlong: 0, malformed: 3 };
  expect(callsLine("the user's model", counts, true)).toBe(
    "the user's model: 9 replies (unusable: 1 refusal, 3 malformed), 2 calls tried again, 1 without an answer",
  );
  expect(callsLine("the user's model", counts, false)).toMatch(/takes no seed, so its words do not repeat$/);
});
