import { systemClock } from '@backtalk/kit';
import { afterAll, expect, it } from 'vitest';
import { JsonParser } from './json-parser.js';

const parser = new JsonParser(systemClock);
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

it('survives a text that takes more memory than its thread has', async () => {
  // Its collector may try for so long that its time is over first.
  await expect(parse(`[${'{},'.repeat(5_000_000)}{}]`)).rejects.toThrow(/too much memory|All places are taken/);
  expect(await parse('[1]')).toEqual([1]);
});
