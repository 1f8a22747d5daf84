// The other client, in a process of its own: asks small questions one after another and notes how long each took.
// In: the gateway's URL and a key as arguments. Out: over IPC, `enough` once it has been answered often enough since it was
// last asked, and at each message what it noted since then. A client that is refused asks again a little later.
import { setTimeout as wait } from 'node:timers/promises';
import { ask } from '../loop/talk.js';

const [gateway = '', key = '', enough = ''] = process.argv.slice(2);
const headers = key === '' ? {} : { authorization: `Bearer ${key}` };
const messages = [{ role: 'user' as const, content: 'Is it still as fast as before?' }];
const refusedWaitMs = 100;

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
  const since = noted;
  const startedAt = performance.now();
  const { finished, status, error } = await ask(gateway, { messages, headers, stream: false, maxTokens: 1 });
  // What was asked before the last message belongs to what was before it.
  if (since !== noted) continue;
  if (finished) noted.answeredMs.push(performance.now() - startedAt);
  else {
    noted.failed.push(error === '' ? String(status) : error);
    await wait(refusedWaitMs);
  }
  if (noted.answeredMs.length === Number(enough)) process.send?.('enough');
}
