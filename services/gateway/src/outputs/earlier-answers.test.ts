import { FakeClock } from '@backtalk/kit/testing';
import type { FactReader } from '@backtalk/kit';
import { Conversation_Encoding, TurnCompleted, TurnOpened } from '@backtalk/proto/facts';
import { expect, it } from 'vitest';
import type { Caller } from '../domain/caller.js';
import { EarlierAnswers } from './earlier-answers.js';

const callerOf = (user: string): Caller => ({ tenant: 't', user, policies: ['backtalk'] }) as unknown as Caller;
const ann = callerOf('ann');

/** A log in which each turn says its own name; `lost` has their payloads in no copy that answers. */
class Log {
  readonly asked: string[] = [];
  lost = false;

  constructor(private readonly words: (turn: string) => string = (turn) => `I am ${turn}.`) {}

  lastHeaders(name: string, { user, turn }: { user: string; turn: string }) {
    return Promise.resolve(user === 'ann' && turn !== 'turn_none' ? { name } : undefined);
  }

  last(name: string, { turn }: { turn: string }) {
    this.asked.push(`${name} ${turn}`);
    if (this.lost) return Promise.resolve(undefined);
    const messages = Buffer.from(JSON.stringify([{ role: 'user', content: `Who is ${turn}?` }]));
    const conversation = { encoding: Conversation_Encoding.ENCODING_JSON, messages };
    const message =
      name === 'turnCompleted'
        ? TurnCompleted.fromPartial({
            turn,
            policy: turn === 'turn_other' ? 'other' : 'backtalk',
            text: this.words(turn),
          })
        : TurnOpened.fromPartial({ turn, conversation, consent: { train: turn !== 'turn_no' } });
    return Promise.resolve({ message });
  }

  get reader(): FactReader {
    return this as unknown as FactReader;
  }
}

const said = (turn: string) => ({ role: 'assistant', content: `I am ${turn}.` });
const ask = (previous: string | undefined, ...referred: string[]) => ({ previous, referred });

it('what was said up to an answer is given with it, and whether it was not to be learned from', async () => {
  const earlier = new EarlierAnswers(new Log().reader, new FakeClock());
  const question = { role: 'user', content: 'Who is turn_no?' };
  expect(await earlier.named(ann, ask('turn_no', 'turn_1'), 1_000)).toEqual({
    earlier: [question, said('turn_no')],
    answers: { turn_1: said('turn_1') },
    train: false,
  });
  expect(await earlier.named(ann, ask('turn_2'), 1_000)).toMatchObject({ train: true });
});

it('an answer is read once in ten minutes, and for its own person alone', async () => {
  const [log, clock] = [new Log(), new FakeClock()];
  const earlier = new EarlierAnswers(log.reader, clock);
  const read = (caller = ann) => earlier.named(caller, ask(undefined, 'turn_1'), 1_000);
  await read();
  expect((await read()).answers).toEqual({ turn_1: said('turn_1') });
  expect(log.asked).toHaveLength(1);
  expect((await read(callerOf('bob'))).answers).toEqual({});
  await clock.advance(10 * 60_000 + 1);
  await read();
  expect(log.asked).toHaveLength(2);
});

it('answers end at the first that is not there, and what is behind it is not looked for', async () => {
  const log = new Log();
  const turns = ['turn_1', 'turn_none', ...Array.from({ length: 20 }, (_, at) => `turn_later${String(at)}`)];
  const { answers } = await new EarlierAnswers(log.reader, new FakeClock()).named(
    ann,
    ask(undefined, ...turns),
    10_000,
  );
  expect(answers).toEqual({ turn_1: said('turn_1') });
  expect(log.asked.length).toBeLessThanOrEqual(8);
});

it.each([
  ['of a policy that the key does not open', 'turn_other'],
  ['that is not in the log', 'turn_none'],
  ['with a name that is none', 'turn_*'],
])('an answer %s is not found', async (_, turn) => {
  const earlier = new EarlierAnswers(new Log().reader, new FakeClock());
  expect((await earlier.named(ann, ask(undefined, turn), 1_000)).answers).toEqual({});
  await expect(earlier.named(ann, ask(turn), 1_000)).rejects.toMatchObject({ code: 'previous_response_not_found' });
});

it('a copy of the log that lags is no proof that there is nothing', async () => {
  const log = new Log();
  log.lost = true;
  const earlier = new EarlierAnswers(log.reader, new FakeClock());
  for (const asked of [ask('turn_1'), ask(undefined, 'turn_1')])
    await expect(earlier.named(ann, asked, 1_000)).rejects.toMatchObject({ code: 'log_unavailable' });
});

it('all that is read for a request is bounded together', async () => {
  const earlier = new EarlierAnswers(new Log(() => 'x'.repeat(400)).reader, new FakeClock());
  const tooLarge = (param: string) => ({ code: 'request_too_large', detail: { param } });
  expect(await earlier.named(ann, ask('turn_1', 'turn_2'), 1_000)).toMatchObject({ train: true });
  await expect(earlier.named(ann, ask('turn_1'), 400)).rejects.toMatchObject(tooLarge('previous_response_id'));
  await expect(earlier.named(ann, ask(undefined, 'turn_1', 'turn_2', 'turn_3'), 1_000)).rejects.toMatchObject(
    tooLarge('input'),
  );
});
