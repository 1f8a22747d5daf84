import { PassThrough } from 'node:stream';
import { kvBucket } from '@backtalk/kit';
import { startNats, until } from '@backtalk/kit/testing';
import { Routes } from '@backtalk/proto/weights';
import { expect, it } from 'vitest';
import { tellServed } from './served-versions.js';
import { createTerminal } from './terminal.js';

it('a version that comes to answer is said once, and what answered before is not', async () => {
  const nats = await startNats();
  const routes = kvBucket(await nats.connect('publisher'), 'routes', Routes);
  const put = (policy: string, stable: string) => routes.put(policy, Routes.fromPartial({ policy, stable }));
  await put('ada', 'ada-v3');
  let shown = '';
  const output = new PassThrough();
  output.on('data', (text: Buffer) => (shown += text.toString()));
  const tellNoMore = await tellServed(() => nats.connect('admin'), createTerminal(output));
  await put('ada', 'ada-v3');
  await put('ben', 'ben-v0');
  await put('ben', 'ben-v1');
  await put('ada', 'ada-v4');
  await until(() => shown.includes('ada-v4'));
  const lines = shown.trim().split('\n');
  expect(lines.map((line) => line.slice(line.indexOf(' s  ') + 4))).toEqual(
    ['ben-v1', 'ada-v4'].map((version) => `${version} answers: npx backtalk versions ${version}`),
  );
  await tellNoMore();
  await nats.stop();
  await tellServed(() => Promise.reject(new TypeError('no broker')), createTerminal(output));
  expect(shown).toContain('which version answers is not said here');
});
