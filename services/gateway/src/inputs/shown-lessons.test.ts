import { fakePromptIds } from '@backtalk/dialects/testing';
import { decodeConversation, FactPublisher, type FactMessage } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { BatchClosed, Lesson_State, TurnJudged } from '@backtalk/proto/facts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ready,
  startGateway,
  startLeasedEngine,
  startSurroundings,
  type LeasedEngine,
  type StartedGateway,
  type Surroundings,
} from '../testing/started-gateway.js';

let around: Surroundings;
let leased: LeasedEngine;
let started: StartedGateway;

beforeAll(async () => {
  around = await startSurroundings();
  leased = await startLeasedEngine(around, 'engine-1');
  started = await startGateway(around, { BACKTALK_SHOW_LESSONS: 'on' });
  await ready(started);
});

afterAll(async () => {
  await started.gateway.stop();
  await leased.stop();
  await around.stop();
});

interface Asked {
  readonly status: number;
  readonly id: string;
  readonly shown: string | null;
  readonly messages: readonly object[];
}

async function ask(content: string, headers: Record<string, string> = {}, more: object = {}): Promise<Asked> {
  const messages = [{ role: 'user', content }];
  const response = await fetch(`${started.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'backtalk', messages, ...more }),
  });
  await response.text();
  const id = response.headers.get('x-backtalk-turn') ?? '';
  return { status: response.status, id, shown: response.headers.get('x-backtalk-lessons'), messages };
}

async function completed(turn: string): Promise<FactMessage<'turnCompleted'>> {
  const fact = await until(() => around.reader.last('turnCompleted', { turn }), { what: `turn.completed of ${turn}` });
  return fact.message;
}

const promptOf = (content: string) => fakePromptIds([{ role: 'user', content }]);

async function add(text: string): Promise<string> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${started.url}/lessons`, { method: 'POST', headers, body: JSON.stringify({ text }) });
  return ((await response.json()) as { readonly id: string }).id;
}

/** A wish as the judge hears it. */
async function judge(turn: string, wish: Partial<TurnJudged>): Promise<void> {
  const { tenant, user, policy } = await completed(turn);
  const publisher = new FactPublisher(await around.nats.connect('judge'));
  const fact = TurnJudged.fromPartial({ turn, tenant, user, policy, verdict: -1, ...wish });
  await publisher.publish('turnJudged', fact);
}

describe('lessons at answering time', () => {
  it('a lesson is shown to the engine from the next answer on, and the log holds the request as it was sent', async () => {
    expect(await ask('Why is it wet?')).toMatchObject({ status: 200, shown: null });
    const lesson = await add('Answer in French.');
    const { id, shown, messages } = await ask('Why?');
    expect(shown).toBe('1');
    const fact = await completed(id);
    expect(fact.promptIds).toEqual(promptOf('Why?\n\nAnswer in French.'));
    expect(fact.shown).toEqual({ lessons: [{ lesson, text: 'Answer in French.' }], message: 0 });
    expect(fact.trainable).toBe(true);
    const opened = await until(() => around.reader.last('turnOpened', { turn: id }), { what: 'the request' });
    const { conversation } = opened.message;
    const read =
      conversation && (await decodeConversation(conversation, () => Promise.reject(new TypeError('no other turn'))));
    expect(read?.messages).toEqual(messages);
    expect(await started.metric('lessons_shown_total')).toBe(1);
  });

  it('a streamed answer says as much', async () => {
    const { id, shown } = await ask('And when?', {}, { stream: true });
    expect(shown).toBe('1');
    expect((await completed(id)).promptIds).toEqual(promptOf('And when?\n\nAnswer in French.'));
  });

  it('a request that says off, and one for a version by its name, are asked as they are', async () => {
    for (const asked of [
      await ask('Plain?', { 'x-backtalk-lessons': 'off' }),
      await ask('Pinned?', {}, { model: 'backtalk-v0' }),
    ]) {
      expect(asked).toMatchObject({ status: 200, shown: null });
      expect((await completed(asked.id)).shown).toBeUndefined();
    }
  });

  it('a wish that is said to stand helps before any batch takes it in', async () => {
    const { id } = await ask('What now?');
    await judge(id, { hint: 'From now on, use tables.', stands: true });
    await judge((await ask('And once?')).id, { hint: 'Shorter here.' });
    const asked = await until(
      async () => {
        const one = await ask('Next?');
        return one.shown === '2' ? one : undefined;
      },
      { what: 'an answer with the wish' },
    );
    expect((await completed(asked.id)).shown?.lessons.map(({ text }) => text)).toEqual([
      'Answer in French.',
      'From now on, use tables.',
    ]);
  });

  it('what no longer fits the context with lessons is asked without them', async () => {
    const { maxContext } = leased.engine.settings;
    const content = 'Fits alone?';
    leased.engine.settings.maxContext = promptOf(content).length + 4;
    const { id, status, shown } = await ask(content, {}, { max_tokens: 2 });
    leased.engine.settings.maxContext = maxContext;
    expect([status, shown]).toEqual([200, null]);
    expect(await completed(id)).toMatchObject({ promptIds: promptOf(content), shown: undefined });
  });

  it('a lesson that the weights hold is shown no more', async () => {
    const { tenant, user } = await completed((await ask('Who?')).id);
    const scope = { scopeTenant: tenant, scopeUser: user };
    const publisher = new FactPublisher(await around.nats.connect('trainer'));
    const state = Lesson_State.STATE_LEARNED;
    const wordings = ['Answer in French.', 'From now on, use tables.'];
    const lessons = wordings.map((text, at) => ({ id: `lesson_${at}`, text, state, ...scope }));
    const fact = BatchClosed.fromPartial({ policy: 'backtalk', number: 1, lessons, lessonsThrough: 1_000 });
    await publisher.publish('batchClosed', fact, { expectSequence: 0 });
    await until(async () => (await ask('Still?')).shown === null, { what: 'an answer without lessons' });
  });
});
