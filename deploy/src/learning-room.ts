// Tells the trainer whether there is room on disk to learn, by a key of the bucket `settings` beside the operator's own
// switch: an operator's pause outlives a full disk, and the other way round.
import { connectBroker, createLogger, kvBucket, type KvCodec } from '@backtalk/kit';
import type { Ports } from './ports.js';
import { policy } from './processes.js';
import type { Secrets } from './secrets.js';

const codec: KvCodec<{ readonly full: boolean }> = {
  toJSON: (value) => value,
  fromJSON: (json) => ({ full: JSON.stringify(json) === '{"full":true}' }),
};

export async function tellRoom(ports: Ports, { passwords }: Secrets, full: boolean): Promise<void> {
  const broker = await connectBroker({
    url: `nats://127.0.0.1:${String(ports.nats)}`,
    user: 'admin',
    password: passwords.admin,
    name: 'deploy',
    logger: createLogger({ service: 'deploy', level: 'silent' }),
  });
  try {
    await kvBucket(broker, 'settings', codec).put(`${policy}.storage`, { full });
  } finally {
    await broker.close();
  }
}
