// What a key opens: one record of the bucket `keys`, under the SHA-256 of the key. The key itself is kept nowhere. Pure.
import { z } from 'zod';

const limits = z.object({
  requestsPerMinute: z.number().int().positive().optional(),
  tokensPerMinute: z.number().int().positive().optional(),
  concurrency: z.number().int().positive().optional(),
  /** Of turns and feedback that the log takes from this key; the day is UTC's. Beyond it chat goes on, unkept. */
  captureBytesPerDay: z.number().int().nonnegative().optional(),
});

export const keyGrant = z.object({
  tenant: z.string().min(1).default('default'),
  user: z.string().min(1).default('local'),
  train: z.boolean().default(true),
  acceptsUserField: z.boolean().default(false),
  limits: limits.default({}),
});
export type KeyGrant = z.infer<typeof keyGrant>;
