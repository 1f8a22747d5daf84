import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { Packer } from './packer.js';

function written(bytes: number) {
  const messages = Buffer.from(JSON.stringify([{ role: 'user', content: randomBytes(bytes / 2).toString('hex') }]));
  const nothing = new Uint8Array(0);
  const remembered = { messages: 1, digest: '', depth: 0 };
  const shared = { baseTurn: '', sharedMessages: 0, newBytes: bytes };
  return { messages, tools: nothing, templateArguments: nothing, ...shared, remembered };
}

it('conversations of one key are compressed one after another, and another key’s beside them', async () => {
  const packer = new Packer();
  const done: string[] = [];
  const pack = (keyId: string, bytes: number) =>
    packer.pack(keyId, written(bytes)).then(() => done.push(`${keyId}${bytes}`));
  await Promise.all([pack('eve', 4_000_000), pack('eve', 8_000), pack('ann', 8_000)]);
  expect(done).toEqual(['ann8000', 'eve4000000', 'eve8000']);
});
