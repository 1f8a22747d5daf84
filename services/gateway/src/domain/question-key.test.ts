import { describe, expect, it } from 'vitest';
import type { ChatMessage } from './chat-request.js';
import { questionKeysOf, questionsIn } from './question-key.js';

const user = (content: unknown): ChatMessage => ({ role: 'user', content });
const assistant: ChatMessage = { role: 'assistant', content: 'Done.' };

describe('questionsIn', () => {
  it('gives what was said before each answer, and before the one that is to come', () => {
    expect(questionsIn([user('Light on'), assistant, user('Too bright')])).toEqual(['Lighton', 'Toobright']);
    expect(questionsIn([user('Light on')])).toEqual(['Lighton']);
    expect(questionsIn([])).toEqual(['']);
  });

  it('reads a person’s words without what a client puts around them, in texts and in parts', () => {
    const stamped = user('[Mon 2026-11-02 10:00 UTC] Light on');
    const inParts = user([
      { type: 'text', text: 'Light on' },
      { type: 'text', text: '<environment_details>\nnight\n</environment_details>' },
    ]);
    expect(questionsIn([stamped])).toEqual(['Lighton']);
    expect(questionsIn([inParts])).toEqual(['Lighton']);
  });

  it('takes what a tool gave, and a message that is the client’s alone, as it came', () => {
    expect(questionsIn([user('Look'), assistant, { role: 'tool', content: 'a.txt b.txt' }])[1]).toBe('a.txtb.txt');
    expect(questionsIn([user('HEARTBEAT_OK')])).toEqual(['HEARTBEAT_OK']);
  });

  it('reads no more than the end of the last message before each of the newest four answers', () => {
    const said = Array.from({ length: 6 }, (_, index) => [user(`question ${String(index)}`), assistant]).flat();
    expect(questionsIn([...said, user('end')])).toEqual([...[2, 3, 4, 5].map((n) => `question${String(n)}`), 'end']);
    const ending = (start: string) => questionsIn([user(`${start}${' and on'.repeat(1_000)} b`)])[0];
    expect(ending('one')).toBe(ending('other'));
    expect(ending('one')).not.toBe(questionsIn([user(`one${' and on'.repeat(1_000)} c`)])[0]);
    expect(ending('one')?.length).toBeLessThan(64);
    expect(questionsIn([user('first'), assistant, assistant, user(null)])).toEqual(['first', '', '']);
  });
});

describe('questionKeysOf', () => {
  it('equal questions have equal keys of a secret, none has an empty one, and no answer has the same', () => {
    const [one, other, none] = questionKeysOf('secret', ['Lighton', 'Lighton', '']);
    expect(one).toHaveLength(32);
    expect(other).toBe(one);
    expect(none).toBe('');
    expect(questionKeysOf('other secret', ['Lighton'])).not.toEqual([one]);
  });
});
