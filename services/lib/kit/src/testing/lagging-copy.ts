// A copy of the log of turns that lags: it answers direct gets in place of the stream now and then, as a replica does that has not
// caught up. In: a broker, and a turn in its log. Out: the copy, once it has denied that turn, and how to take it away.
import { TurnOpened } from '@backtalk/proto/facts';
import { FactPublisher } from '../facts/publisher.js';
import { FactReader } from '../facts/reader.js';
import type { TurnIds } from '../facts/turn-log.js';
import { newId } from '../identity/ids.js';
import type { TestNats } from './nats-server.js';
import { until } from './until.js';

export interface LaggingCopy {
  remove(): Promise<void>;
}

const stream = 'TURNS';
const name = 'LAGGING';

export async function lagBehind(nats: TestNats, known: TurnIds): Promise<LaggingCopy> {
  const admin = await nats.connect('admin');
  const { streams } = admin.jsm;
  const { state } = await streams.info(stream);
  const mirror = { name: stream, opt_start_seq: state.last_seq + 1 };
  await streams.add({ name, mirror, mirror_direct: true, allow_direct: true });
  // It answers once it holds something.
  const later = { turn: newId(), tenant: newId(), user: newId(), policy: 'backtalk' };
  await new FactPublisher(admin).publish('turnOpened', TurnOpened.fromPartial(later));
  const { tenant, user, turn } = known;
  const reader = new FactReader(admin);
  const isDenied = async () => (await reader.last('turnOpened', { tenant, user, turn })) === undefined;
  await until(isDenied, { what: 'an answer of the copy that lags' });
  return {
    remove: async () => {
      await streams.delete(name);
    },
  };
}
