import { expect, it } from 'vitest';
import type { EngineFrame } from '../engine-client.js';
import { CaptureAccumulator } from './accumulator.js';

const frame = (given: Partial<EngineFrame>): EngineFrame => ({ raw: {}, choice: 0, ...given });

it('bytes of a capture grow with its prompt’s ids, its answer’s ids and logprobs, and its words', () => {
  const accumulator = new CaptureAccumulator();
  const grownBy = (given: Partial<EngineFrame>): number => {
    const before = accumulator.bytes;
    accumulator.add(frame(given));
    return accumulator.bytes - before;
  };
  expect(grownBy({ promptIds: Array.from({ length: 1_000 }, () => 1) })).toBe(8_000);
  expect(grownBy({ ids: [1, 2], logprobs: [-1, -2] })).toBe(32);
  for (const words of [
    { content: 'word' },
    { reasoning: 'word' },
    { toolCallDeltas: [{ index: 0, arguments: 'word' }] },
  ])
    expect(grownBy(words)).toBeGreaterThan(4);
  expect(grownBy({ choice: 1, content: 'another choice' })).toBe(0);
});

it('ids and logprobs that are let go are kept no longer, nor are those that come later, and words are', () => {
  const accumulator = new CaptureAccumulator();
  accumulator.add(frame({ promptIds: [1], ids: [2], logprobs: [-1] }));
  accumulator.letIdsGo();
  accumulator.add(frame({ promptIds: [1], ids: [3], logprobs: [-1], content: 'word' }));
  expect(accumulator.capture()).toMatchObject({ promptIds: undefined, answerIds: [], logprobs: [], text: 'word' });
});

it('bytes of a capture stay a number, whatever an engine sends in place of words and ids', () => {
  const accumulator = new CaptureAccumulator();
  accumulator.add(JSON.parse('{"choice":0,"reasoning":{},"content":7,"promptIds":{}}') as EngineFrame);
  expect(accumulator.bytes).toBeLessThan(1_000);
});
