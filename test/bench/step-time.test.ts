import { expect, it } from 'vitest';
import { readStepTable } from './step-time.js';

const table = `8 samples, 60 prompt and 31 answer tokens each, one thread, float32
resident with the model loaded: 900 MB
step                                            median s   least    most  median CPU s  peak MB
worker: teacher, base, gradient, AdamW, bound      12.50   12.00   14.25         12.00     1800
plain PyTorch: teacher, gradient, AdamW            10.00    9.75   11.00          9.60     2600
the worker's last step, seconds by phase: teacher 2.00, save 0.10
`;

it("the worker's table is read as it is printed", () => {
  const { figures, notes } = readStepTable(table);
  expect(figures.map(({ values }) => values)).toEqual([[12.5, 12, 14.25], [10, 9.75, 11], [1.25], [1.25], [1800]]);
  expect(figures[0]?.name).toBe('step of the worker: teacher, base, gradient, AdamW, bound');
  expect(notes).toHaveLength(2);
});

it('a table that is not there is said so', () => {
  expect(() => readStepTable('Killed')).toThrow('is not what the benchmark can read');
});
