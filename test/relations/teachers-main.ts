// `node test/dist/relations/teachers-main.js [--file PEOPLE.json] [--people N] [--json]`: what share of the base's answers obey a wish, by what it is
// shown: one of its person's sentences, all of them, or what the trainer shows to teachers. Each person asks and complains in words of
// their own, and nothing is said to stand. About two minutes a person on two cores.
import { createEngineClient, dialectNamed } from '@backtalk/dialects';
import { inForce } from '@backtalk/kit';
import { repositoryRoot } from '@backtalk/kit/testing';
import { Lesson, Lesson_State } from '@backtalk/proto/facts';
import { compared, withCovers, type WishEffects } from '@backtalk/trainer/lesson-cover';
import { MeasuredEffects } from '@backtalk/trainer/measured-effects';
import { recipePresets } from '@backtalk/trainer/recipe';
import { decodePlan, planOf } from '@backtalk/trainer/step-plan';
import { relateByWords } from '@backtalk/trainer/wishes';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import OpenAI from 'openai';
import { z } from 'zod';

import { baseName, startBuiltin } from '../contracts/engines.js';
import { ask } from '../simulate/ask.js';
import { inParallel } from '../simulate/in-parallel.js';
import { violates } from '../simulate/user/rule.js';
import { ruleSchema } from '../simulate/user/user-file.js';

const peopleFile = z.array(
  z.object({
    name: z.string(),
    rule: ruleSchema,
    asks: z.array(z.string()).min(4),
    complains: z.array(z.string()).min(3),
  }),
);
type Person = z.infer<typeof peopleFile>[number];

const questions = [
  'How do plants make food?',
  'What is a good way to learn to swim?',
  'Why is the sea salty?',
  'How can I sleep better?',
  'What does a librarian do?',
  'How do I clean a wooden table?',
  'Why do cats purr?',
  'What should I cook for a friend?',
];
const samples = 3;
const temperature = 0.8;
const answerTokens = 48;
const patienceMs = 600_000;
const speaker = { tenant: 't', user: 'u' };

const { values: asked } = parseArgs({
  options: {
    file: { type: 'string', default: join(repositoryRoot(), 'test/heldout/people.json') },
    people: { type: 'string', default: '100' },
    json: { type: 'boolean', default: false },
  },
});

const people = peopleFile.parse(JSON.parse(readFileSync(asked.file, 'utf8'))).slice(0, Number(asked.people));
const running = await startBuiltin();
const client = new OpenAI({ baseURL: `${running.url}/v1`, apiKey: 'none' });
const engine = createEngineClient({ url: running.url, dialect: dialectNamed('vllm') });
try {
  if (!asked.json) print('', 'asks', 'complains', 'all shown', 'chosen', 'best of one');
  for (const person of people) {
    const row = await measured(person);
    if (asked.json) process.stdout.write(`${JSON.stringify(row)}\n`);
    else print(row.name, ...[row.asks, row.complains, row.all, row.chosen, row.best].map((share) => share.toFixed(2)));
  }
} finally {
  await engine.close();
  await running.stop();
}

async function measured(person: Person) {
  const asks = person.asks.slice(0, 4);
  const complains = person.complains.slice(0, 3);
  const heard = asks.flatMap((ask, at) => [ask, ...complains.slice(at, at + 1)]);
  const alone = new Map<string, number>();
  for (const words of heard) alone.set(words, await obeying(person, [words]));
  const of = (words: readonly string[]) => words.reduce((sum, one) => sum + (alone.get(one) ?? 0), 0) / words.length;
  const shown = await shownOf(heard);
  return {
    name: person.name,
    asks: of(asks),
    complains: of(complains),
    all: await obeying(person, heard),
    chosen: await obeying(person, shown),
    best: Math.max(...alone.values()),
    shown,
  };
}

/** What teachers are shown of lessons that came into force in this order. */
async function shownOf(heard: readonly string[]): Promise<string[]> {
  const lessons = heard.map((text) =>
    Lesson.fromPartial({
      id: text,
      text,
      state: Lesson_State.STATE_ACTIVE,
      hints: 1,
      cameBack: true,
      session: text,
      scopeTenant: speaker.tenant,
      scopeUser: speaker.user,
    }),
  );
  const covered = withCovers(lessons, compared(lessons, heard), await effectsOf(heard), relateByWords);
  return inForce(covered, speaker).map(({ text }) => text);
}

/** A busy machine may need longer than a batch waits; what is known then is kept. */
async function effectsOf(wishes: readonly string[]): Promise<WishEffects> {
  const plan = decodePlan(planOf(recipePresets.tiny.recipe).bytes);
  if (plan === undefined) throw new TypeError('the plan of the laptop is none');
  const serving = [{ url: running.url, client: engine }];
  const effects = new MeasuredEffects({ base: () => baseName, use: (_base, _wanted, work) => work(serving) });
  const until = Date.now() + patienceMs;
  for (;;) {
    try {
      const found = await effects.among([{ words: wishes, inForce: wishes }], plan, AbortSignal.timeout(patienceMs));
      if (found !== undefined) return found;
    } catch (error) {
      if (Date.now() > until) throw error;
    }
  }
}

async function obeying({ rule }: Person, shown: readonly string[]): Promise<number> {
  const asked = Array.from({ length: samples }, () => questions).flat();
  const answers = await inParallel(asked, questions.length, (question) =>
    ask(client, [{ role: 'user', content: [question, ...shown].join('\n\n') }], {
      model: baseName,
      maxTokens: answerTokens,
      temperature,
      train: true,
    }),
  );
  return answers.filter((answer) => !violates(rule, answer)).length / answers.length;
}

function print(name: string, ...cells: readonly string[]): void {
  process.stdout.write(`${name.padEnd(28)}${cells.map((cell) => cell.padStart(12)).join('')}\n`);
}
