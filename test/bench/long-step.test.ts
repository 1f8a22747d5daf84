import { modelConfig } from '@backtalk/kit';
import { expect, it } from 'vitest';
import { reportOf } from './long-step.js';

const config = modelConfig.parse({
  hidden_size: 100,
  intermediate_size: 200,
  num_hidden_layers: 10,
  num_attention_heads: 10,
});

it('a long step’s memory stands beside what is reckoned for it, without the weights', () => {
  const found = { tokens: 1_000_000, seconds: 60, cpu_seconds: 50, bound_passes: 2, rank: 1, config };
  const { figures } = reportOf({ name: 'x' }, { ...found, loaded_bytes: 1e9, peak_bytes: 17e9 });
  const valueOf = (start: string) => figures.find(({ name }) => name.startsWith(start))?.values[0];
  expect(valueOf('of this')).toBe(16);
  // 4 · 1,000 of the layers' inputs and 4 · 3,000 of one layer's work for each token, and .3 GB beside the adapter.
  expect(valueOf('the same')).toBeCloseTo(16.3, 2);
  expect(valueOf('measured against')).toBeCloseTo(16 / 16.3, 3);
});
