// The replies that models are known to give to a judge's prompt, each with what it is as a vote. Written by hand after formats that the
// models document or are known for; none was recorded.
import { readFileSync } from 'node:fs';
import { z } from 'zod';

const reply = z.strictObject({
  id: z.string(),
  form: z.string(),
  /** Which models, engines or habits give such a reply. */
  after: z.string(),
  message: z.looseObject({ content: z.union([z.string(), z.array(z.looseObject({ type: z.string() })), z.null()]) }),
  finish: z.string(),
  verdict: z.union([z.literal(-1), z.literal(0), z.literal(1), z.null()]),
  hint: z.string(),
});
export type WrittenReply = z.infer<typeof reply>;

const file = new URL('../../fixtures/replies.jsonl', import.meta.url);

export function writtenReplies(): WrittenReply[] {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return lines.map((line) => reply.parse(JSON.parse(line)));
}
