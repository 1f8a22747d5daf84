import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Metrics } from '../telemetry/metrics.js';
import { ConsumerRig } from '../testing/consumer-rig.js';
import { FakeClock } from '../testing/fake-clock.js';
import { until } from '../testing/until.js';

let ground: ConsumerRig;

beforeAll(async () => {
  ground = await ConsumerRig.start();
});

afterAll(() => ground.nats.stop());

const measureEveryMs = 5_000;
const gauge = 'backtalk_test_facts_pending';

describe('what consumers measure', () => {
  it('figures of two policies stand beside each other, and go with their consumer', async () => {
    const [busy, idle] = [ground.place(), ground.place()];
    const [metrics, clock] = [new Metrics('test'), new FakeClock()];
    const pending = async () => {
      const found: unknown = (await metrics.registry.getMetricsAsJSON()).find(({ name }) => name === gauge);
      return (found as { readonly values: readonly unknown[] }).values;
    };
    const figure = ({ suffix: policy }: typeof busy, value: number): unknown =>
      expect.objectContaining({ labels: { fact: 'sessionEnded', policy }, value });
    await ground.publish(busy, 1);
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    let taken = 0;
    const consumers = [busy, idle].map((place) =>
      ground.consumer(
        place,
        () => {
          taken += 1;
          return gate;
        },
        { metrics, clock },
      ),
    );
    for (const consumer of consumers) await consumer.start();
    await until(() => taken === 1);
    await clock.advance(measureEveryMs);
    await until(async () => (await pending()).length === 2);
    expect(await pending()).toEqual(expect.arrayContaining([figure(busy, 1), figure(idle, 0)]));
    const [first, second] = consumers;
    release();
    await first?.stop();
    expect(await pending()).toEqual([figure(idle, 0)]);
    await second?.stop();
    expect(await metrics.registry.metrics()).not.toMatch(
      /^backtalk_test_facts_(pending|in_hand|held|oldest_age_seconds)\{/m,
    );
  });
});
