import { createEngineClient } from '@backtalk/dialects';
import { startFakeEngine } from '@backtalk/dialects/testing';
import { expect, it } from 'vitest';

import { askAbout } from './asked.js';
import { measureRelations, type LabelledPair } from './measure.js';

it('a model that reads is measured on all pairs, in requests as the trainer makes them', async () => {
  const others = Array.from({ length: 40 }, (_, n) => `No essay of ${n} pages.`);
  const pairs = others.map((b): LabelledPair => ({ a: 'Be crisp.', b, relation: 'same', kind: '' }));
  const counted = (text: string) => Array.from(text.matchAll(/earlier wish (\d+)>>/g), ([, number]) => Number(number));
  const engine = await startFakeEngine({
    baseModel: 'reader',
    reply: (messages) => `\\boxed{${JSON.stringify({ same: counted(messages.at(-1)?.content ?? ''), opposite: [] })}}`,
  });
  const client = createEngineClient({ url: engine.url, dialect: 'openai', apiKey: '' });
  const { relate, outcomes } = await askAbout(pairs, { client, model: 'reader' });
  expect(measureRelations(pairs, relate).sameFound).toBe(1);
  expect(measureRelations(pairs).sameFound).toBe(0);
  expect(outcomes).toEqual({ read: 2 });
  await client.close();
  await engine.stop();
});
