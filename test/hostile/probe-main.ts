// The other client, in a process of its own: asks small questions one after another and notes how long each took.
// In: the gateway's URL and a key as arguments. Out: over IPC, at each message, what it noted since the last one.
import { ask } from '../loop/talk.js';

const [gateway = '', key = ''] = process.argv.slice(2);
const headers = key === '' ? {} : { authorization: `Bearer ${key}` };
const messages = [{ role: 'user' as const, content: 'Is it still as fast as before?' }];

export interface Noted {
  readonly answeredMs: readonly number[];
  readonly failed: readonly string[];
}

let noted = { answeredMs: [] as number[], failed: [] as string[] };

process.on('message', () => {
  process.send?.(noted satisfies Noted);
  noted = { answeredMs: [], failed: [] };
});
process.on('disconnect', () => process.exit(0));

for (;;) {
  const startedAt = performance.now();
  const { finished, status, error } = await ask(gateway, { messages, headers, stream: false, maxTokens: 1 });
  if (finished) noted.answeredMs.push(performance.now() - startedAt);
  else noted.failed.push(error === '' ? String(status) : error);
}
