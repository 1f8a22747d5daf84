import { systemClock } from '@backtalk/kit';
import { FakeClock } from '@backtalk/kit/testing';
import { afterAll, expect, it } from 'vitest';
import { JsonParser, parserHeapMebibytes } from './json-parser.js';

const parser = new JsonParser(systemClock, parserHeapMebibytes);
afterAll(() => parser.stop());

const parse = (text: string | Buffer) => parser.parse(Buffer.concat([Buffer.from(text)]));

it('gives a value back as it is, and refuses what is no JSON or no UTF-8', async () => {
  const value = { a: ['é', '\ud83d', 1.5, null, true], ['__proto__']: { b: {} } };
  expect(JSON.stringify(await parse(JSON.stringify(value)))).toBe(JSON.stringify(value));
  await expect(parse('{"a":')).rejects.toMatchObject({ code: 'invalid_json' });
  await expect(parse(Buffer.from([0x22, 0xff, 0x22]))).rejects.toThrow('it is not valid UTF-8');
});

it('lets the event loop turn while it parses', async () => {
  const [large, small] = [JSON.stringify(Array.from({ length: 400_000 }, (_, index) => `é${index}`)), '[]'];
  const turnsDuring = async (text: string): Promise<number> => {
    const parsing = parse(text);
    let isOver = false;
    void parsing.finally(() => (isOver = true));
    for (let turns = 0; ; turns += 1) {
      if (isOver) return turns;
      await new Promise(setImmediate);
    }
  };
  await turnsDuring(small);
  expect(await turnsDuring(large)).toBeGreaterThan(20);
});

// Over its heap, Node ends a thread by an error most of the time, and the process now and then.
it('reads the costliest bodies that pass the bounds in three quarters of its heap', async () => {
  const bytes = 8 * 2 ** 20;
  const tight = new JsonParser(systemClock, (parserHeapMebibytes * 3) / 4);
  const lines = (count: number, line: (index: number) => string): string =>
    Array.from({ length: count }, (_, index) => line(index)).join(',');
  const costly = [
    `[${lines(3_300, (row) => `{${lines(29, (index) => `"k${row}_${index}":1`)}}`)}]`,
    `{${lines(99_000, (index) => `"k${index}${'y'.repeat(70)}":${index}.5`)}}`,
    `[${lines(49_000, (index) => `{"k${index}${'x'.repeat(150)}":"é${index}"}`)}]`,
    `["${'x'.repeat(bytes - 10)}😀"]`,
    `["${'\\u00e9'.repeat(bytes / 6 - 10)}"]`,
  ];
  for (const text of costly) expect(typeof (await tight.parse(Buffer.from(text)))).toBe('object');
  tight.stop();
});

it('gives a text up that takes too long, and reads the next one', async () => {
  const clock = new FakeClock();
  const slow = new JsonParser(clock, parserHeapMebibytes);
  const given = slow.parse(Buffer.from(`[${'1,'.repeat(3_000_000)}1]`));
  await Promise.all([expect(given).rejects.toThrow('All places are taken'), clock.advance(5_000)]);
  expect(await slow.parse(Buffer.from('[2]'))).toEqual([2]);
  slow.stop();
});
