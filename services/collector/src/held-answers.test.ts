import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CollectorRig } from './testing/collector-rig.js';
import { completed, opened, tenant, turnPattern, type Said } from './testing/turns.js';

const ask = { role: 'user', content: 'why is the sky blue?' };
const answer = { role: 'assistant', content: 'because of the air' };
const more = { role: 'user', content: '[Sun 2026-11-22 11:26 UTC] and at dusk?' };
const stamped = { role: 'user', content: '[Sun 2026-11-22 11:28 UTC] and at dusk?' };
const thanks = { role: 'user', content: 'thanks' };

describe('answers, and the requests that hold them', () => {
  let rig: CollectorRig;
  let user = '';
  let markers = 0;

  beforeAll(async () => {
    rig = await CollectorRig.start();
    await rig.begin();
  });
  afterAll(() => rig.stop());
  beforeEach(() => {
    user = rig.nextUser();
  });

  const idOf = (name: string) => turnPattern(`${user}${name}`);

  async function request(name: string, said: Omit<Said, 'turn' | 'user'>): Promise<void> {
    await requestAs(idOf(name), said);
  }

  async function requestAs(turn: string, said: Omit<Said, 'turn' | 'user'>): Promise<void> {
    await rig.gateway.publish('turnOpened', opened({ turn, user, ...said }));
    await taken(turn, 'earlierAnswers');
  }

  async function answered(name: string, key: string, session?: string): Promise<void> {
    await answeredAs(idOf(name), key, session);
  }

  async function answeredAs(turn: string, key: string, session?: string): Promise<void> {
    await rig.gateway.publish('turnCompleted', completed(turn, user, key, session));
    await taken(turn, 'completedSequence');
  }

  /** In hand once it is in the index. */
  async function taken(turn: string, field: string): Promise<void> {
    await until(async () => (await rig.index.hexists(`collector:turn:${turn}`, field)) === 1, {
      what: `${field} of ${turn}`,
    });
  }

  /** Facts are handled one after another: when one more is in hand, those before it are done with. */
  async function settled(): Promise<void> {
    markers += 1;
    await request(`z${String(markers)}`, { messages: [ask] });
  }

  async function last(turn?: string) {
    await settled();
    return (await rig.reader.last('turnContinued', { tenant, user, ...(turn === undefined ? {} : { turn }) }))?.message;
  }

  async function acts(): Promise<string[][]> {
    await settled();
    const found: string[][] = [];
    for await (const { message } of rig.reader.read(['turnContinued'], { filter: { turnContinued: { user } } }))
      if (message.act !== '') found.push([message.act, message.turn, message.continuedBy]);
    return found;
  }

  const asked = { messages: [ask, answer, more], answerKeys: ['k1'] };
  const askedAgain = { messages: [ask, answer, stamped], answerKeys: ['k1'] };
  const goesOn = (key: string) => ({
    messages: [ask, answer, stamped, { role: 'assistant', content: key }, thanks],
    answerKeys: ['k1', key],
  });

  /** A conversation of one turn, whose answer is `k1`. */
  async function begun(): Promise<void> {
    await request('a', { messages: [ask] });
    await answered('a', 'k1');
  }

  it('answers that were made again are heard once the person goes on from the last of them', async () => {
    await begun();
    for (const name of ['b', 'c', 'd']) {
      await request(name, askedAgain);
      await answered(name, `k${name}`);
    }
    expect(await acts()).toEqual([]);
    await request('e', goesOn('kd'));
    const expected = ['b', 'c'].map((name) => ['regenerated', idOf(name), idOf('d')]);
    expect((await acts()).sort()).toEqual(expected);
  });

  it('an answer that was made again is recognised though its client stamps the time anew, and after Valkey was emptied', async () => {
    await begun();
    await request('b', asked);
    await answered('b', 'kb');
    await request('c', askedAgain);
    await answered('c', 'kc');
    await settled();
    await rig.valkey.flush();
    await request('d', goesOn('kc'));
    expect(await acts()).toEqual([['regenerated', idOf('b'), idOf('c')]]);
    await answered('d', 'kd');
    await settled();
    await rig.valkey.flush();
    const messages = [...goesOn('kc').messages, { role: 'assistant', content: 'kd' }, thanks];
    await request('e', { messages, answerKeys: ['k1', 'kc', 'kd'] });
    const fact = await last(idOf('d'));
    expect(fact).toMatchObject({ continuedBy: idOf('e'), parent: idOf('c'), act: '' });
    // What was made again is no turn before the other.
    expect(await rig.index.hget(`collector:turn:${idOf('c')}`, 'parent')).toBe(idOf('a'));
  });

  it.each(['never', 'before they are linked', 'after they are linked'])(
    'answers that are in the log before their requests are linked count as made again, where Valkey is emptied %s',
    async (emptied) => {
      await rig.end();
      for (const [name, said] of Object.entries({ a: { messages: [ask] }, b: asked, c: askedAgain, d: asked })) {
        await rig.gateway.publish('turnOpened', opened({ turn: idOf(name), user, ...said }));
        await rig.gateway.publish('turnCompleted', completed(idOf(name), user, name === 'a' ? 'k1' : `k${name}`));
      }
      if (emptied === 'before they are linked') await rig.valkey.flush();
      await rig.begin();
      await rig.untilTaken();
      if (emptied === 'after they are linked') await rig.valkey.flush();
      await request('e', goesOn('kd'));
      const expected = ['b', 'c'].map((name) => ['regenerated', idOf(name), idOf('d')]);
      expect((await acts()).sort()).toEqual(expected);
    },
  );

  it.each([
    [
      'another to the same, asked for at once',
      async () => {
        await request('b', asked);
        await request('c', askedAgain);
        await answered('b', 'kb');
        await answered('c', 'kc');
        await request('d', goesOn('kc'));
      },
    ],
    [
      'the same answer again',
      async () => {
        for (const name of ['b', 'c']) {
          await request(name, askedAgain);
          await answered(name, 'kc');
        }
        await request('d', goesOn('kc'));
      },
    ],
    [
      'an answer to something else',
      async () => {
        await request('b', { messages: [ask, answer, { role: 'user', content: 'and at dawn?' }], answerKeys: ['k1'] });
        await answered('b', 'kb');
        await request('c', askedAgain);
        await answered('c', 'kc');
        await request('d', goesOn('kc'));
      },
    ],
    [
      'an answer to a first question, which may begin another conversation',
      async () => {
        for (const name of ['b', 'c']) {
          await request(name, { messages: [thanks] });
          await answered(name, `k${name}`);
        }
        await request('d', { messages: [thanks, { role: 'assistant', content: 'kc' }, more], answerKeys: ['kc'] });
      },
    ],
    [
      'an answer to what a tool said',
      async () => {
        const told = [ask, answer, { role: 'tool', content: 'x', tool_call_id: '1' }];
        for (const name of ['b', 'c']) {
          await request(name, { messages: told, answerKeys: ['k1'] });
          await answered(name, `k${name}`);
        }
        await request('d', {
          messages: [...told, { role: 'assistant', content: 'kc' }, thanks],
          answerKeys: ['k1', 'kc'],
        });
      },
    ],
  ])('no answer was made again where there is %s', async (_what, talk) => {
    await begun();
    await talk();
    const went = await last(idOf('c'));
    expect(went?.continuedBy).toBe(idOf('d'));
    expect(await acts()).toEqual([]);
  });

  it('a first question asked again counts in a session that its client declares', async () => {
    const session = `session_${user}`;
    for (const name of ['b', 'c']) {
      await request(name, { messages: [thanks], session, declared: 'mine' });
      await answered(name, `k${name}`, session);
    }
    const messages = [thanks, { role: 'assistant', content: 'kc' }, more];
    await request('d', { messages, answerKeys: ['kc'], session, declared: 'mine' });
    expect(await acts()).toEqual([['regenerated', idOf('b'), idOf('c')]]);
  });

  it('an answer that was made again is not learned from where the person had said no', async () => {
    await begun();
    await request('b', { ...askedAgain, train: false });
    await answered('b', 'kb');
    await request('c', askedAgain);
    await answered('c', 'kc');
    await request('d', goesOn('kc'));
    const fact = await last(idOf('b'));
    expect(fact?.act).toBe('regenerated');
    expect(fact?.consent?.train).toBe(false);
  });

  it('no request goes on from an answer that was given to a later one, though its history holds the same words', async () => {
    const idAt = (hex: string) => `turn_${hex}7${user.slice(4).padStart(19, '0')}`;
    const [before, after] = [idAt('018bcfe56800'), idAt('018bcfe58000')];
    await requestAs(before, asked);
    await requestAs(after, { messages: [ask] });
    await answeredAs(after, 'k1');
    expect(await last()).toBeUndefined();
    await request('a', asked);
    const fact = await last();
    expect(fact).toMatchObject({ turn: after, continuedBy: idOf('a') });
  });
});
