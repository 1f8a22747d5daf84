import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Broker } from '../broker/connect.js';
import { brokerErrors } from '../broker/errors.js';
import { ConsumerRig } from '../testing/consumer-rig.js';
import { until } from '../testing/until.js';
import { replayStream } from '../topology/streams.js';

let ground: ConsumerRig;

beforeAll(async () => {
  ground = await ConsumerRig.start();
});

afterAll(() => ground.nats.stop());

describe('the start of a consumer', () => {
  it('a start that fails half-way takes no fact any more', async () => {
    const place = ground.place();
    const taken: string[] = [];
    const count = await ground.countRequests(place);
    const broker: Broker = {
      ...ground.collector,
      ask: async (request) => {
        if (!request.subject.startsWith(`$JS.API.CONSUMER.CREATE.${replayStream}.`))
          return ground.collector.ask(request);
        await until(() => count() === 1);
        throw brokerErrors.brokerForbidden({ subject: request.subject });
      },
    };
    const handledBy = (name: string) => async () => {
      taken.push(name);
    };
    const half = ground.consumer(place, handledBy('half'), { broker });
    await expect(half.start()).rejects.toMatchObject({ code: 'broker_forbidden' });
    await ground.publish(place, 5);
    const whole = ground.consumer(place, handledBy('whole'));
    await whole.start();
    await until(async () => (await whole.position('sessionEnded')).unsettled === 0 && taken.length === 5);
    await whole.stop();
    expect(new Set(taken)).toEqual(new Set(['whole']));
  });
});
