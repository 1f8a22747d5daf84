import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openPage, stream, type OpenPage } from './testing/open-page.js';

const answers = 'POST /v1/chat/completions';
const lesson = {
  id: 'lesson_1',
  text: 'Be brief.',
  state: 'active',
  hints: 1,
  wordings: [],
  progress: null,
  steps: 0,
  ended_by: null,
  covered_by: null,
  pending: false,
};
const changed = { question: 'Why?', before: 'Because.', after: 'So.' };
const version = {
  id: 'backtalk-v1',
  stage: 'stable',
  serving: true,
  why: null,
  previous: 'backtalk-v0',
  staged_at: '2026-01-01T00:00:00.000Z',
  compared: [changed],
};

let page: OpenPage;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  page = await openPage();
  await settled();
});

afterEach(async () => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  await page.window.happyDOM.close();
});

/** Until nothing that was begun goes on without a timer or a test's own word. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

const text = (id: string) => page.part(id).textContent;
const trouble = () => (page.part('trouble').hidden ? '' : text('trouble'));

function aborted(signal: AbortSignal): Promise<Response> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => {
      reject(signal.reason as Error);
    });
  });
}

/** A question whose answer the test writes. */
async function asked(words: string, headers: Record<string, string> = {}) {
  let made: ReturnType<typeof stream> | undefined;
  page.reply(answers, (_, signal) => (made = stream(signal, headers)).response);
  page.submit('ask', 'words', words);
  await settled();
  if (made === undefined) throw new TypeError('Nothing was asked.');
  return made;
}

async function answered(words: string, headers: Record<string, string> = {}): Promise<void> {
  const { write, end } = await asked(words, headers);
  write('Well.');
  end();
  await settled();
}

const lastQuestion = () =>
  page.asked.filter(({ path }) => path === '/v1/chat/completions').at(-1) ?? { headers: new Headers(), body: {} };

describe('the conversation on the page', () => {
  it('an answer that is stopped stays as far as it was heard, and is what the next question follows', async () => {
    const { write } = await asked('Tell me all.');
    write('It began ');
    await settled();
    expect([page.part('stop').hidden, page.part('send').hidden]).toEqual([false, true]);
    page.part('stop').click();
    await settled();
    expect(text('talk')).toContain('It began backtalk-v1 answered until you stopped it.');
    expect([page.part('stop').hidden, trouble()]).toEqual([true, '']);
    await answered('Go on.');
    expect(lastQuestion().body).toMatchObject({
      messages: [{ content: 'Tell me all.' }, { role: 'assistant', content: 'It began ' }, { content: 'Go on.' }],
    });
  });

  it('a question that is stopped before its answer began is given back', async () => {
    page.reply(answers, (_, signal) => aborted(signal));
    page.submit('ask', 'words', 'Hello?');
    await settled();
    page.part('stop').click();
    await settled();
    expect([page.field('words').value, text('talk'), trouble()]).toEqual(['Hello?', '', '']);
  });

  it('a question stays where it was typed while an answer is coming, and the page says why', async () => {
    await asked('One?');
    page.submit('ask', 'words', 'Two?');
    await settled();
    expect(page.count(answers)).toBe(1);
    expect(page.field('words').value).toBe('Two?');
    expect(trouble()).toContain('still coming');
  });

  it('a new conversation stops the answer of the one before, of which nothing is shown or sent any more', async () => {
    const { write } = await asked('One?');
    write('Late.');
    page.part('anew').click();
    await settled();
    expect([text('talk'), page.field('words').value]).toEqual(['', '']);
    await answered('Two?');
    expect(lastQuestion().body).toMatchObject({ messages: [{ content: 'Two?' }] });
  });

  it('what the endpoint is set to about reminders holds until the box is touched', async () => {
    await answered('One?');
    expect(lastQuestion().headers.get('X-Backtalk-Lessons')).toBeNull();
    for (const said of ['on', 'off']) {
      page.part('remind').click();
      await answered('And?');
      expect(lastQuestion().headers.get('X-Backtalk-Lessons')).toBe(said);
    }
  });

  it('an answer that is not recorded says so, in place of asking to be corrected', async () => {
    await answered('One?', { 'X-Backtalk-Capture': 'off; full=key' });
    expect(text('talk')).toContain('not recorded');
    expect(text('talk')).not.toContain('Just answer back');
    expect(page.part('talk').querySelectorAll('button')).toHaveLength(0);
  });

  it('an answer that is not learned from says so', async () => {
    await answered('One?', { 'X-Backtalk-Train': 'off' });
    expect(text('talk')).toContain('Nothing is learned from it');
    expect(text('talk')).not.toContain('Just answer back');
  });

  it('a conversation that no longer fits the model is told as that', async () => {
    const error = { code: 'context_length_exceeded', message: 'Lower the number of tokens asked for.' };
    page.reply(answers, () => Response.json({ error }, { status: 400 }));
    page.submit('ask', 'words', 'More?');
    await settled();
    expect(trouble()).toContain('Start a new one');
  });

  it('a thumb that is on its way has no second one beside it, and the focus stays where it was', async () => {
    let reply: (response: Response) => void = () => undefined;
    await answered('One?');
    page.reply('POST /v1/feedback', () => new Promise((resolve) => (reply = resolve)));
    const [good, bad] = [...page.part('talk').querySelectorAll('button')];
    good?.focus();
    good?.click();
    bad?.click();
    await settled();
    reply(Response.json({}));
    await settled();
    expect(page.count('POST /v1/feedback')).toBe(1);
    expect(document.activeElement?.textContent).toBe('Noted: good.');
  });

  it('Enter sends, but not where it only ends the composition of a sign', async () => {
    page.reply(answers, (_, signal) => stream(signal).response);
    const words = page.field('words');
    const happen = (event: object, timeStamp: number) =>
      words.dispatchEvent(Object.defineProperty(event, 'timeStamp', { value: timeStamp }) as never);
    const { KeyboardEvent, Event } = page.window;
    words.value = '日本';
    happen(new Event('compositionend'), 1_000);
    happen(new KeyboardEvent('keydown', { key: 'Enter' }), 1_001);
    await settled();
    expect(page.count(answers)).toBe(0);
    happen(new KeyboardEvent('keydown', { key: 'Enter' }), 1_300);
    await settled();
    expect(page.count(answers)).toBe(1);
  });
});

describe('lessons and versions on the page', () => {
  it('a lesson that is submitted twice at once is taught once, and what is typed meanwhile stays', async () => {
    let reply: (response: Response) => void = () => undefined;
    page.reply('POST /v1/lessons', () => new Promise((resolve) => (reply = resolve)));
    page.submit('teach', 'wish', 'Always rhyme.');
    page.submit('teach', 'wish', 'Always rhyme.');
    await settled();
    page.field('wish').value = 'Never use lists.';
    reply(Response.json({}));
    await settled();
    expect(page.count('POST /v1/lessons')).toBe(1);
    expect(page.field('wish').value).toBe('Never use lists.');
  });

  it('a lesson that is sent again after an error is the same submission, and one after it another', async () => {
    const keyOf = () => page.asked.findLast(({ method }) => method === 'POST')?.headers.get('Idempotency-Key');
    page.reply('POST /v1/lessons', () => new Response('', { status: 502 }));
    page.submit('teach', 'wish', 'Rhyme.');
    await settled();
    const first = keyOf();
    page.reply('POST /v1/lessons', () => Response.json({}));
    page.submit('teach', 'wish', 'Rhyme.');
    await settled();
    expect([typeof first, keyOf()]).toEqual(['string', first]);
  });

  it('an action waits for a look that is under way: a key may have one request at a time', async () => {
    let reply: (response: Response) => void = () => undefined;
    page.reply('GET /v1/lessons', () => new Promise((resolve) => (reply = resolve)));
    await vi.advanceTimersByTimeAsync(5_000);
    page.submit('teach', 'wish', 'Rhyme.');
    await settled();
    expect(page.count('POST /v1/lessons')).toBe(0);
    page.reply('GET /v1/lessons', () => Response.json({ data: [lesson] }));
    reply(Response.json({ data: [] }));
    await settled();
    expect(page.count('POST /v1/lessons')).toBe(1);
    expect(page.mostAtOnce()).toBe(1);
    expect(text('lessons')).toContain('Be brief.');
  });

  it("the model's name is asked once for a key", async () => {
    await answered('One?');
    await answered('Two?');
    page.submit('teach', 'wish', 'Rhyme.');
    await settled();
    expect(page.count('GET /v1/models')).toBe(1);
    page.submit('key', 'key-text', 'sk-other');
    await answered('Three?');
    expect(page.count('GET /v1/models')).toBe(2);
  });

  it('a look that comes too often for its key raises nothing, and the page looks less often from then on', async () => {
    page.reply('GET /v1/lessons', () => Response.json({ error: { message: 'Too often.' } }, { status: 429 }));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(trouble()).toBe('');
    page.reply('GET /v1/lessons', () => Response.json({ data: [] }));
    await vi.advanceTimersByTimeAsync(60_000);
    const looks = page.count('GET /v1/lessons');
    await vi.advanceTimersByTimeAsync(9_000);
    expect(page.count('GET /v1/lessons')).toBe(looks);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(page.count('GET /v1/lessons')).toBe(looks + 1);
  });

  it('what is new replaces its own item alone: focus and opened parts of all others stay', async () => {
    const other = { ...lesson, id: 'lesson_2', text: 'Rhyme.' };
    page.reply('GET /v1/lessons', () => Response.json({ data: [lesson, other] }));
    page.reply('GET /v1/versions?limit=8', () => Response.json({ data: [{ ...version, serving: false }] }));
    await vi.advanceTimersByTimeAsync(5_000);
    const [, button] = [...page.part('lessons').querySelectorAll('button')];
    const details = page.part('versions').querySelector('details');
    if (details === null || button === undefined) throw new TypeError('The page lacks what was told.');
    details.open = true;
    button.focus();
    page.reply('GET /v1/lessons', () => Response.json({ data: [{ ...lesson, steps: 4 }, other] }));
    page.reply('GET /v1/versions?limit=8', () =>
      Response.json({ data: [{ ...version, serving: false, stage: 'retired' }] }),
    );
    await vi.advanceTimersByTimeAsync(5_000);
    expect(text('lessons')).toContain('4 steps');
    expect(document.activeElement).toBe(button);
    expect(text('versions')).toContain('out of the engines');
    expect(page.part('versions').querySelector('details')?.open).toBe(true);
    page.reply('GET /v1/lessons', () => Response.json({ data: [other] }));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(text('lessons')).not.toContain('Be brief.');
    expect(document.activeElement).toBe(button);
  });

  it('an item with the focus that becomes another has it afterwards', async () => {
    page.reply('GET /v1/lessons', () => Response.json({ data: [lesson] }));
    await vi.advanceTimersByTimeAsync(5_000);
    page.part('lessons').querySelector('button')?.focus();
    page.reply('GET /v1/lessons', () => Response.json({ data: [{ ...lesson, state: 'learned' }] }));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(document.activeElement).toBe(page.part('lessons').firstElementChild);
  });

  it('two answers side by side are each under the name of the version that gave them', async () => {
    page.reply('GET /v1/versions?limit=8', () => Response.json({ data: [version] }));
    await vi.advanceTimersByTimeAsync(5_000);
    const said = [...page.part('versions').querySelectorAll('dd')].map((one) =>
      [...one.children].map((part) => part.textContent),
    );
    expect(said).toEqual([
      ['backtalk-v0', 'Because.'],
      ['backtalk-v1', 'So.'],
    ]);
  });
});
