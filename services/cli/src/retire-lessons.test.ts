import { writeFileSync } from 'node:fs';
import { FactReader, userHash } from '@backtalk/kit';
import { startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import { Lesson } from '@backtalk/proto/facts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Connection } from './connection.js';
import { retireLessons } from './retire-lessons.js';

const directory = new TemporaryDirectory('retire-lessons');
const secret = 'a secret of the tests, long enough';
let nats: TestNats;

beforeAll(async () => {
  nats = await startNats();
  writeFileSync(directory.join('secrets.json'), JSON.stringify({ hashSecret: secret }));
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

async function giverOn(data: string | undefined): Promise<string | undefined> {
  const { url: natsUrl, user: natsUser, password: natsPassword } = nats.credentials('cli');
  const connection = { policy: 'fresh', natsUrl, natsUser, natsPassword, wire: {}, data } as Connection;
  await retireLessons(connection, [Lesson.fromPartial({ id: 'l1', scopeTenant: 't', scopeUser: 'u' })]);
  const reader = new FactReader(await nats.connect('trainer'));
  const givers = [];
  for await (const { message } of reader.read(['lessonChanged'])) givers.push(message.giver);
  return givers.at(-1);
}

it('a command that ends lessons is the person’s own word on a machine without keys, and an operator’s elsewhere', async () => {
  const grant = { sha256: 'a'.repeat(64), tenant: 'default', user: 'ann', policies: ['fresh'] };
  expect(await giverOn(directory.path)).toBe(userHash(secret, 'default', 'local'));
  writeFileSync(directory.join('keys.json'), JSON.stringify({ keys: [grant] }));
  expect(await giverOn(directory.path)).toBe('');
  expect(await giverOn(undefined)).toBe('');
});
