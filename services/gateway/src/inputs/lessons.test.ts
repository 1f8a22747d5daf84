import { writeFile } from 'node:fs/promises';
import { FactPublisher, FactReader, keyedHash, sha256Hex } from '@backtalk/kit';
import type { Lesson } from '@backtalk/proto/facts';
import { BatchClosed, Lesson_State, LessonChanged, LessonChanged_Action } from '@backtalk/proto/facts';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startGateway, startSurroundings, type StartedGateway, type Surroundings } from '../testing/started-gateway.js';

let around: Surroundings;
let started: StartedGateway;
let sequence = 0;

const people = [
  { tenant: 'acme', user: 'ann' },
  { tenant: 'acme', user: 'bob' },
  { tenant: 'acme', user: 'cat', train: false },
  { tenant: 'acme', user: 'app', acceptsUserField: true },
  { tenant: 'other', user: 'ann' },
  { tenant: 'other', user: 'app', acceptsUserField: true, policies: ['second'] },
];
const keyOf = (tenant: string, user: string) => `sk-${tenant}-${user}`;
const hash = (text: string) => keyedHash('a secret of the tests, long enough', text);
const acme = hash('tenant\nacme');
const ann = hash('user\nacme\nann');
const bob = hash('user\nacme\nbob');

beforeAll(async () => {
  around = await startSurroundings();
  const path = around.directory.join('keys.json');
  const policies = ['backtalk', 'second'];
  const keys = people.map((one) => ({ policies, ...one, sha256: sha256Hex(keyOf(one.tenant, one.user)) }));
  await writeFile(path, JSON.stringify({ keys }));
  started = await startGateway(around, { BACKTALK_KEYS_FILE: path, BACKTALK_POLICIES: 'backtalk,second' });
});

afterAll(async () => {
  await started.gateway.stop();
  await around.stop();
});

interface Shown {
  readonly id: string;
  readonly text: string;
  readonly state: string;
  readonly pending: boolean;
  readonly may_change: boolean;
  readonly shown: boolean;
}

async function ask(key: string, method: string, path = '', body?: object, headers: Record<string, string> = {}) {
  const response = await fetch(`${started.url}/lessons${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Shown & { readonly data: readonly Shown[] } };
}

/** As the trainer leaves them. */
async function closeBatch(lessons: readonly Partial<Lesson>[], lessonsThrough = 0): Promise<void> {
  const publisher = new FactPublisher(await around.nats.connect('trainer'));
  const fact = BatchClosed.fromPartial({
    policy: 'backtalk',
    number: sequence + 1,
    lessons: lessons.map((lesson) => ({ scopeTenant: acme, state: Lesson_State.STATE_ACTIVE, ...lesson })),
    lessonsThrough,
  });
  ({ sequence } = await publisher.publish('batchClosed', fact, { expectSequence: sequence }));
}

async function changes(): Promise<{ message: LessonChanged; sequence: number }[]> {
  const reader = new FactReader(await around.nats.connect('trainer'));
  const found = [];
  for await (const { message, sequence: at } of reader.read(['lessonChanged'])) found.push({ message, sequence: at });
  return found;
}

const texts = async (key: string, query = '') => (await ask(key, 'GET', query)).body.data.map(({ text }) => text);

describe('/v1/lessons', () => {
  it('shows a key the lessons of its person and of its tenant, and another tenant none', async () => {
    const askedAgain = [{ question: 'Which?', before: 'That one.', after: '| that |' }];
    const measures = [
      { batch: 4, turns: 4, chance: -10, told: 20, own: 9, steps: 3, questions: 0, hidden: false, askedAgain },
    ];
    await closeBatch([
      { id: 'l-ann', text: 'Use tables.', scopeUser: ann, hints: 2, wordings: ['Tables!'], measures, steps: 3 },
      { id: 'l-bob', text: 'In French.', scopeUser: bob, state: Lesson_State.STATE_LEARNED },
      { id: 'l-all', text: 'Be polite.' },
      { id: 'l-old', text: 'No tenant is named.', scopeTenant: '' },
    ]);
    expect(await texts(keyOf('acme', 'ann'))).toEqual(['Use tables.', 'Be polite.']);
    expect(await texts(keyOf('acme', 'app'))).toEqual(['Use tables.', 'In French.', 'Be polite.']);
    expect(await texts(keyOf('acme', 'app'), '?user=bob')).toEqual(['In French.', 'Be polite.']);
    expect(await texts(keyOf('acme', 'ann'), '?policy=second')).toEqual([]);
    expect(await texts(keyOf('other', 'ann'))).toEqual([]);
    expect((await ask(keyOf('acme', 'ann'), 'GET', '/l-ann')).body).toMatchObject({
      object: 'lesson',
      policy: 'backtalk',
      state: 'active',
      held: false,
      scope: 'user',
      hints: 2,
      wordings: ['Tables!'],
      progress: 0.63,
      measured: [{ batch: 4, progress: 0.63 }],
      asked_again: [{ question: 'Which?', before: 'That one.', after: '| that |', batch: 4 }],
      steps: 3,
      pending: false,
    });
    await closeBatch([
      { id: 'l-ann', text: 'Use tables.', scopeUser: ann, measures, state: Lesson_State.STATE_RETIRED },
    ]);
    expect((await ask(keyOf('acme', 'ann'), 'GET', '/l-ann')).body).toMatchObject({
      state: 'retired',
      asked_again: [],
    });
    for (const [key, id] of [
      [keyOf('other', 'ann'), 'l-ann'],
      [keyOf('acme', 'ann'), 'l-bob'],
      [keyOf('acme', 'ann'), 'never-was'],
    ] as const)
      for (const [method, body] of [['GET'], ['PATCH', { state: 'retired' }], ['DELETE']] as const)
        expect(await ask(key, method, `/${id}`, body)).toMatchObject({
          status: 404,
          body: { error: { code: 'lesson_not_found' } },
        });
    expect(await changes()).toEqual([]);
  });

  it('stores what is said of a lesson as a fact, and shows it before the trainer has read it', async () => {
    const key = keyOf('acme', 'ann');
    const added = await ask(key, 'POST', '', { text: ' Use metric units. ', model: 'backtalk' });
    expect(added).toMatchObject({ status: 200, body: { text: 'Use metric units.', state: 'active', pending: true } });
    const { id } = added.body;
    expect((await ask(key, 'PATCH', `/${id}`, { text: 'Use metres.' })).body.text).toBe('Use metres.');
    expect((await ask(key, 'DELETE', `/${id}`)).body.state).toBe('retired');
    expect((await ask(key, 'PATCH', `/${id}`, { state: 'active' })).body.state).toBe('active');
    expect((await ask(key, 'GET', `/${id}`)).body).toMatchObject({
      text: 'Use metres.',
      state: 'active',
      pending: true,
    });
    const said = await changes();
    const { ACTION_ADD, ACTION_EDIT, ACTION_RETIRE, ACTION_REACTIVATE } = LessonChanged_Action;
    expect(said.map(({ message }) => message.action)).toEqual([
      ACTION_ADD,
      ACTION_EDIT,
      ACTION_RETIRE,
      ACTION_REACTIVATE,
    ]);
    for (const { message } of said)
      expect(message).toMatchObject({ tenant: acme, user: ann, giver: ann, policy: 'backtalk', lesson: id });
    await closeBatch([{ id, text: 'Use metres.', scopeUser: ann }], said.at(-1)?.sequence);
    expect((await ask(key, 'GET', `/${id}`)).body).toMatchObject({ text: 'Use metres.', pending: false });
    // What waits is active, and a person may say that it waits no longer.
    await closeBatch([{ id, text: 'Use metres.', scopeUser: ann, waitsFor: 'another' }], said.at(-1)?.sequence);
    expect((await ask(key, 'GET', `/${id}`)).body).toMatchObject({ state: 'active', waits_for: 'another' });
    expect((await ask(key, 'PATCH', `/${id}`, { state: 'active' })).body.pending).toBe(true);
  });

  it('teaches nothing by a key that nothing is learned from, nor by a request that says so, and ends a lesson all the same', async () => {
    const before = (await changes()).length;
    const declined = { status: 403, body: { error: { code: 'lesson_declined' } } };
    const lesson = { text: 'Use feet.', policy: 'backtalk' };
    const off = { 'X-Backtalk-Train': 'off' };
    expect(await ask(keyOf('acme', 'cat'), 'POST', '', lesson)).toMatchObject(declined);
    expect(await ask(keyOf('acme', 'ann'), 'POST', '', lesson, off)).toMatchObject(declined);
    expect(await changes()).toHaveLength(before);
    const { id } = (await ask(keyOf('acme', 'ann'), 'POST', '', lesson)).body;
    expect(await ask(keyOf('acme', 'ann'), 'PATCH', `/${id}`, { text: 'Use yards.' }, off)).toMatchObject(declined);
    expect((await ask(keyOf('acme', 'ann'), 'DELETE', `/${id}`, undefined, off)).body.state).toBe('retired');
    expect(await ask(keyOf('acme', 'ann'), 'PATCH', `/${id}`, { state: 'active' }, off)).toMatchObject(declined);
  });

  it('makes one lesson of a request that is sent twice under one idempotency key', async () => {
    const before = (await changes()).length;
    const send = () =>
      ask(keyOf('acme', 'ann'), 'POST', '', { text: 'Use tables.', policy: 'backtalk' }, { 'idempotency-key': 'k1' });
    expect((await send()).body.id).toBe((await send()).body.id);
    expect(await changes()).toHaveLength(before + 1);
  });

  it('says which lessons teachers are shown, and refuses one more than are kept in place of letting one go unsaid', async () => {
    const key = keyOf('acme', 'ann');
    const through = (await changes()).at(-1)?.sequence;
    const many = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ id: `l${n}`, text: `Wish ${n}.`, scopeUser: ann }));
    await closeBatch(many(13), through);
    const shown = async () => (await ask(key, 'GET')).body.data.map((one) => one.shown);
    expect(await shown()).toEqual([false, ...Array<boolean>(12).fill(true)]);
    expect((await ask(key, 'GET', '/l0')).body.shown).toBe(false);
    // It is active, and is taken up again all the same.
    expect((await ask(key, 'PATCH', '/l0', { state: 'active' })).body).toMatchObject({ pending: true, shown: true });
    expect((await ask(key, 'GET', '/l1')).body.shown).toBe(false);
    expect((await ask(key, 'PATCH', '/l5', { state: 'active' })).body.pending).toBe(false);
    const retired = { id: 'over', text: 'Over.', scopeUser: ann, state: Lesson_State.STATE_RETIRED };
    await closeBatch([...many(64), retired], (await changes()).at(-1)?.sequence);
    const full = { status: 409, body: { error: { code: 'lessons_full' } } };
    const one = { text: 'One more.', policy: 'backtalk' };
    expect(await ask(key, 'POST', '', one)).toMatchObject(full);
    expect(await ask(key, 'PATCH', '/over', { state: 'active' })).toMatchObject(full);
    expect((await ask(key, 'PATCH', '/l9', { text: 'Other words.' })).status).toBe(200);
    expect((await ask(keyOf('acme', 'bob'), 'POST', '', one)).status).toBe(200);
    expect((await ask(key, 'DELETE', '/l0')).status).toBe(200);
    expect((await ask(key, 'POST', '', one, { 'idempotency-key': 'k2' })).status).toBe(200);
    expect((await ask(key, 'POST', '', one, { 'idempotency-key': 'k2' })).status).toBe(200);
    expect(await ask(key, 'POST', '', one)).toMatchObject(full);
  });

  it('shows nothing of a person who is forgotten, before the trainer has taken it in, and another’s as before', async () => {
    const lessons = [ann, bob].map((user) => ({ id: `of-${user}`, text: 'Use tables.', scopeUser: user }));
    await closeBatch(lessons, (await changes()).at(-1)?.sequence);
    const { ACTION_ERASE: action } = LessonChanged_Action;
    const said = LessonChanged.fromPartial({ id: 'forget', tenant: acme, user: ann, policy: 'backtalk', action });
    await new FactPublisher(await around.nats.connect('cli')).publish('lessonChanged', said);
    const shownTo = async (user: string) => (await ask(keyOf('acme', user), 'GET')).body.data.map(({ id }) => id);
    expect(await shownTo('ann')).toEqual([]);
    expect(await shownTo('bob')).toEqual([`of-${bob}`]);
  });

  it('holds for the whole tenant where the key speaks for all of it, and is not one person’s to change', async () => {
    const app = keyOf('acme', 'app');
    const { id } = (await ask(app, 'POST', '', { text: 'Be polite.', policy: 'backtalk' })).body;
    expect((await changes()).at(-1)?.message).toMatchObject({ user: '', lesson: id });
    await ask(app, 'POST', '', { text: 'Be formal.', policy: 'backtalk', user: 'bob' });
    expect((await changes()).at(-1)?.message).toMatchObject({ user: bob, giver: bob });
    expect(await ask(keyOf('acme', 'ann'), 'DELETE', `/${id}`)).toMatchObject({
      status: 403,
      body: { error: { code: 'lesson_shared' } },
    });
    const saying = async (key: string) => {
      const listed = (await ask(key, 'GET')).body.data.find((lesson) => lesson.id === id);
      return [listed?.may_change, (await ask(key, 'GET', `/${id}`)).body.may_change];
    };
    expect(await saying(keyOf('acme', 'ann'))).toEqual([false, false]);
    expect(await saying(app)).toEqual([true, true]);
    expect((await ask(app, 'DELETE', `/${id}`)).body).toMatchObject({ state: 'retired', may_change: true });
  });

  it.each([
    [{}, 'missing_required_parameter', 'text'],
    [{ text: ' ' }, 'invalid_value', 'must not be empty'],
    [{ text: 'x'.repeat(201) }, 'invalid_value', 'at most 200 characters'],
    [{ text: 'One\u0007two' }, 'invalid_value', 'U+0007'],
    [{ text: 'One\ntwo' }, 'invalid_value', 'U+000A'],
    [{ text: 'Be brief.<|im_end|>' }, 'invalid_value', '<|im_end|>'],
    [{ text: 'Be brief.', colour: 'red' }, 'unsupported_parameter', 'colour'],
    [{ text: 'Be brief.' }, 'missing_required_parameter', 'policy'],
  ])('refuses %j, and names what is wrong with it', async (body, code, words) => {
    const answer = await ask(keyOf('acme', 'ann'), 'POST', '', body);
    expect(answer).toMatchObject({ status: 400, body: { error: { code } } });
    expect(JSON.stringify(answer.body)).toContain(words);
  });

  it('refuses changes that say nothing or two things, and the policies that a key does not open', async () => {
    const key = keyOf('acme', 'ann');
    expect(await ask(key, 'PATCH', '/l-ann', {})).toMatchObject({ status: 400 });
    expect(await ask(key, 'PATCH', '/l-ann', { state: 'learned' })).toMatchObject({ status: 400 });
    expect(await ask(key, 'PATCH', '/l-ann', { state: 'active', text: 'x' })).toMatchObject({ status: 400 });
    const closed = { text: 'Be brief.', policy: 'backtalk' };
    expect(await ask(keyOf('other', 'app'), 'POST', '', closed)).toMatchObject({ status: 404 });
    expect(await ask(keyOf('other', 'app'), 'GET', '?policy=backtalk')).toMatchObject({ status: 404 });
    expect(await ask('sk-none', 'GET')).toMatchObject({ status: 401 });
    expect(await ask(key, 'PUT')).toMatchObject({ status: 405 });
  });

  it('a lesson of which its client hears that it could not be stored is not stored', async () => {
    const before = (await changes()).length;
    const reading = vi.spyOn(FactReader.prototype, 'last').mockRejectedValue(new Error('away'));
    const refused = await ask(keyOf('acme', 'ann'), 'POST', '', { text: 'Use tables.', policy: 'backtalk' });
    reading.mockRestore();
    expect(refused.status).toBe(503);
    expect(await changes()).toHaveLength(before);
  });
});
