import { writeFileSync } from 'node:fs';
import { FactReader } from '@backtalk/kit';
import { startNats, TemporaryDirectory } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import { findConnection, withBrokerAlone } from './connection.js';

it('a folder whose file for commands is damaged is told from one that was never started, each in one line', () => {
  const directory = new TemporaryDirectory('connection');
  const named = { data: directory.path };
  expect(() => findConnection(named, '')).toThrow('Backtalk does not run here');
  writeFileSync(directory.join('connection.json'), '{"endpoint": "http://127.0.0.1:3');
  expect(() => findConnection(named, '')).toThrow(
    /connection\.json is damaged \(it is no JSON, or cannot be read\): move it/,
  );
  directory.remove();
});

it('a command whose broker goes away for good says so, where it would wait without an end', async () => {
  const nats = await startNats();
  const { url, user, password } = nats.credentials('cli');
  const connection = { natsUrl: url, natsUser: user, natsPassword: password, wire: { tokens: {} } };
  const reading = withBrokerAlone(
    connection,
    async (broker) => {
      await nats.kill();
      for await (const fact of new FactReader(broker).read(['batchClosed'])) throw new RangeError(fact.name);
    },
    { awayMaxMs: 50 },
  );
  await expect(reading).rejects.toMatchObject({ code: 'unreachable' });
  await nats.stop();
});
