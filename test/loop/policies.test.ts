// Two people of one tenant, each at a policy of their own, teach opposite things through one engine and one training worker.
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { LogBook } from './fact-log.js';
import { startTestMachine, type TestMachine } from './machine.js';
import { ask, type Heard, type Message } from './talk.js';

const wishes = {
  ada: 'From now on, answer in one short sentence.',
  ben: 'From now on, give long answers.',
} as const;
type Person = keyof typeof wishes;
const people = ['ada', 'ben'] as const;
const corrections = 4;

let machine: TestMachine;
let book: LogBook;

beforeAll(async () => {
  machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    policies: people,
    keys: people.map((name) => ({ key: `key-of-${name}`, tenant: 'one', user: name, policies: [name] })),
    environment: { trainer: { BACKTALK_RECIPE_SET: `effective=${corrections},effectiveMin=${corrections}` } },
  });
  book = await LogBook.open(machine);
});

afterAll(async () => {
  await book?.close();
  await machine?.stop();
});

const headersOf = (person: Person) => ({ authorization: `Bearer key-of-${person}` });

function askAs(person: Person, messages: readonly Message[], model: string = person): Promise<Heard> {
  return ask(machine.gateway, { messages, model, headers: headersOf(person) });
}

/** A question, its answer, and a correction; gives the turn that was corrected. */
async function correct(person: Person, number: number): Promise<Heard> {
  const messages: Message[] = [{ role: 'user', content: `How do tides work in bay number ${String(number)}?` }];
  const first = await askAs(person, messages);
  await askAs(person, [
    ...messages,
    { role: 'assistant', content: first.text },
    { role: 'user', content: wishes[person] },
  ]);
  return first;
}

const answersWith = (person: Person, weights: string) =>
  until(
    async () => {
      const heard = await askAs(person, [{ role: 'user', content: 'And who answers now?' }]);
      return heard.weights === weights && heard;
    },
    { what: `${weights} answers`, timeoutMs: 60_000, everyMs: 100 },
  );

const lessonList = z.object({ data: z.array(z.object({ policy: z.string(), text: z.string() })) });

async function lessonsOf(person: Person) {
  const response = await fetch(`${machine.gateway}/v1/lessons`, {
    headers: headersOf(person),
    signal: AbortSignal.timeout(10_000),
  });
  return lessonList.parse(await response.json()).data;
}

describe('each at a policy of their own', () => {
  it('two people teach opposite things, and neither changes what the other is answered with', async () => {
    const corrected: Record<Person, string[]> = { ada: [], ben: [] };
    for (let number = 0; number < corrections; number += 1) corrected.ada.push((await correct('ada', number)).turn);
    await answersWith('ada', 'ada-v1');
    // One word to Ben in between: all that Ada taught has left his model what it was.
    expect((await correct('ben', 0)).weights).toBe('ben-v0');
    expect(new Set((await book.read()).batches.map(({ message }) => message.policy))).toEqual(new Set(['ada']));
    for (let number = 1; number <= corrections; number += 1) corrected.ben.push((await correct('ben', number)).turn);
    await answersWith('ben', 'ben-v1');
    expect((await askAs('ada', [{ role: 'user', content: 'Who are you?' }])).weights).toMatch(/^ada-v/);
    const { batches, staged } = await book.read();
    for (const person of people) {
      const own = batches.filter(({ message }) => message.policy === person).map(({ message }) => message);
      const users = new Set(own.flatMap(({ samples }) => samples.map(({ user }) => user)));
      expect(users.size).toBe(1);
      expect(new Set(own.flatMap((batch) => batch.lessons.map(({ text }) => text)))).toEqual(new Set([wishes[person]]));
      const versions = staged.filter(({ message }) => message.policy === person).map(({ message }) => message.version);
      expect(versions.every((version) => version.startsWith(`${person}-v`))).toBe(true);
    }
    expect(batches[0]?.message.samples.map(({ turn }) => turn)).toEqual(expect.arrayContaining(corrected.ada));
  });

  it('each person finds their own lesson alone, and the other policy does not exist for their key', async () => {
    for (const person of people) {
      expect(await lessonsOf(person)).toEqual([expect.objectContaining({ policy: person, text: wishes[person] })]);
      const other = person === 'ada' ? 'ben' : 'ada';
      expect(await askAs(person, [{ role: 'user', content: 'Hello?' }], other)).toMatchObject({ status: 404 });
    }
  });
});
