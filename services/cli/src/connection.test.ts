import { FactReader } from '@backtalk/kit';
import { startNats } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import { withBrokerAlone } from './connection.js';

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
