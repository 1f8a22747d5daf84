// One labelled next state. Pure.
import { z } from 'zod';

export const labelledItem = z.object({
  id: z.string(),
  /** Items of one family share a way of saying it, and stand in one part together. */
  family: z.string(),
  /** Examples of the prompts; what is developed on; what weights are fitted on; what is kept for the test. */
  split: z.enum(['fewshot', 'dev', 'calibration', 'test']),
  role: z.enum(['user', 'tool']),
  tool: z.string().optional(),
  label: z.union([z.literal(-1), z.literal(0), z.literal(1)]),
  tags: z.array(z.string()),
  question: z.string(),
  answer: z.string(),
  next: z.string(),
  /** The same next state without the injected instructions. */
  clean: z.string().optional(),
});
export type LabelledItem = z.infer<typeof labelledItem>;
