// A codec for values that have a zod schema and no wire type.
import type { ZodType } from 'zod';
import type { KvCodec } from './kv-bucket.js';

export function jsonCodec<T>(schema: ZodType<T>): KvCodec<T> {
  return { toJSON: (value) => value, fromJSON: (json) => schema.parse(json) };
}
