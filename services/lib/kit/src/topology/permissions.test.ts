import { AckPolicy } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Broker } from '../broker/connect.js';
import { createConsumer } from '../broker/pull.js';
import { asBacktalkError } from '../errors/backtalk-error.js';
import { FactReader } from '../facts/reader.js';
import { collect } from '../testing/collect.js';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { blobStream, buckets, bucketStream, bucketSubject } from './buckets.js';
import { durables, factNames, mayRead, catalogue } from './catalogue.js';
import { deadStream, replayStream, streamPlans } from './streams.js';
import { durableOf, subjectFilter } from './subjects.js';
import { brokerServices } from './users.js';

const suffix = 'backtalk';
/** Every durable consumer of an installation, of the log and of what is given back. */
const consumers = durables.flatMap(({ service, name, stream }) =>
  [durableOf(service, name), durableOf(service, name, suffix)].flatMap((durable) => [
    { service, stream: stream, durable, filter: subjectFilter(name) },
    { service, stream: replayStream, durable, filter: `backtalk.replay.${service}.${durable}` },
  ]),
);

const planOf = (durable: string, filter: string) => ({
  name: durable,
  durable_name: durable,
  filter_subject: filter,
  ack_policy: AckPolicy.Explicit,
});

let nats: TestNats;
let users: { readonly user: (typeof brokerServices)[number]; readonly broker: Broker }[];

beforeAll(async () => {
  nats = await startNats({ durableSuffixes: [suffix] });
  users = await Promise.all(brokerServices.map(async (user) => ({ user, broker: await nats.connect(user) })));
  for (const { service, stream, durable, filter } of consumers) {
    const broker = await nats.connect(service);
    await createConsumer(broker, stream, planOf(durable, filter));
    await broker.close();
  }
});

afterAll(() => nats.stop());

async function outcome(broker: Broker, subject: string, data: object = {}): Promise<string> {
  const request = { subject, data: JSON.stringify(data), timeoutMs: 20_000, doing: 'attack' };
  return broker.ask(request).then(
    (reply) => {
      const answer = reply.data.length === 0 ? {} : reply.json<{ readonly error?: { readonly err_code: number } }>();
      return answer.error === undefined ? `allowed ${subject}` : 'broker_forbidden';
    },
    (error: unknown) => asBacktalkError(error).code,
  );
}

/** What was not refused. */
async function allowed(attacks: readonly (readonly [Broker, string, object?])[]): Promise<string[]> {
  const outcomes = await Promise.all(
    attacks.map(async ([broker, subject, data]) => [
      broker.user,
      subject,
      JSON.stringify(data ?? {}),
      await outcome(broker, subject, data),
    ]),
  );
  return outcomes.filter((words) => words[3] !== 'broker_forbidden').map((words) => words.join(' '));
}

async function configurations(): Promise<unknown[]> {
  const admin = await nats.connect('admin');
  return Promise.all(
    consumers.map(async ({ stream, durable }) => {
      const { config, num_ack_pending, delivered, ack_floor } = await admin.jsm.consumers.info(stream, durable);
      return { config, num_ack_pending, delivered, ack_floor };
    }),
  );
}

const operatorsOwn = (user: string, subject: string): boolean =>
  (user === 'cli' && /CONSUMER\.(INFO|LIST)\./.test(subject)) ||
  (user === 'cli' && subject === `$JS.API.STREAM.MSG.DELETE.${deadStream}`) ||
  (['cli', 'trainer'].includes(user) &&
    [blobStream, bucketStream('payloads')].some((stream) => subject === `$JS.API.STREAM.PURGE.${stream}`));

describe('a user of the broker', () => {
  it.each(brokerServices)('%s reaches no durable consumer of another service', async (name) => {
    const broker = await nats.connect(name);
    const before = await configurations();
    const readable = factNames.filter((fact) => mayRead(name, fact));
    const attacks = consumers
      .filter(({ service }) => service !== name)
      .flatMap(({ stream, durable, filter }): (readonly [Broker, string, object?])[] => [
        [broker, `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`, { batch: 1, no_wait: true }],
        [broker, `$JS.ACK.${stream}.${durable}.1.1.1.1.0`],
        [broker, `$JS.API.CONSUMER.INFO.${stream}.${durable}`],
        [broker, `$JS.API.CONSUMER.DELETE.${stream}.${durable}`],
        [broker, `$JS.API.CONSUMER.PAUSE.${stream}.${durable}`, { pause_until: '2999-01-01T00:00:00Z' }],
        [broker, `$JS.API.CONSUMER.UNPIN.${stream}.${durable}`, { group: 'a' }],
        [broker, `$JS.API.CONSUMER.RESET.${stream}.${durable}`],
        [broker, `$JS.API.CONSUMER.LEADER.STEPDOWN.${stream}.${durable}`],
        ...creations(broker, stream, durable, [filter, ...readable.map((fact) => subjectFilter(fact))]),
      ])
      .filter(([, subject]) => !operatorsOwn(name, subject));
    expect(await allowed(attacks)).toEqual([]);
    expect(await configurations()).toEqual(before);
  });

  it('deletes, empties, changes and copies no stream, and lists no consumers', async () => {
    const streams = streamPlans({}).map(({ name }) => name);
    const verbs = ['DELETE', 'PURGE', 'UPDATE', 'CREATE', 'SNAPSHOT', 'RESTORE', 'MSG.DELETE', 'MSG.GET'];
    const subjects = streams.flatMap((stream) => [
      ...verbs.map((verb) => `$JS.API.STREAM.${verb}.${stream}`),
      `$JS.API.STREAM.LEADER.STEPDOWN.${stream}`,
      `$JS.API.STREAM.PEER.REMOVE.${stream}`,
      `$JS.API.CONSUMER.NAMES.${stream}`,
      `$JS.API.CONSUMER.LIST.${stream}`,
      `$JS.API.DIRECT.GET.${stream}`,
    ]);
    const attacks = users
      .flatMap(({ broker }) => subjects.map((subject) => [broker, subject] as const))
      .filter(([{ user }, subject]) => !operatorsOwn(user, subject));
    expect(await allowed(attacks)).toEqual([]);
  });

  it('holds leases of its own kind only', async () => {
    const holders = brokerServices.filter((service) => buckets.leases.writes(service).length > 0);
    expect(holders.length).toBeGreaterThan(4);
    const written = async (broker: Broker, kind: string): Promise<boolean> => {
      const subject = bucketSubject('leases', `${kind}.${broker.user}-1`);
      return (await outcome(broker, subject)) !== 'broker_forbidden';
    };
    for (const { user, broker } of users) {
      const allowedKinds: string[] = [];
      for (const kind of brokerServices) if (await written(broker, kind)) allowedKinds.push(kind);
      expect([user, allowedKinds]).toEqual([user, holders.filter((holder) => holder === user)]);
    }
  });

  it('makes no consumer whose body names another consumer, stream or filter than its subject', async () => {
    const judge = await nats.connect('judge');
    const own = '$JS.API.CONSUMER.CREATE.TURNS.ordered_judge_x.backtalk.turn.opened.>';
    const config = { name: 'ordered_judge_x', filter_subject: 'backtalk.turn.opened.>', ack_policy: 'none' };
    const bodies = [
      { stream_name: 'TURNS', config: { ...config, durable_name: 'trainer_turnJudged' } },
      { stream_name: 'TURNS', config: { ...config, filter_subject: 'backtalk.>' } },
      { stream_name: 'TURNS', config: { ...config, filter_subject: undefined, filter_subjects: ['backtalk.>'] } },
      { stream_name: 'WEIGHTS', config },
    ];
    const before = await configurations();
    // The broker takes the subject's name.
    const renamed = { stream_name: 'TURNS', config: { ...config, name: 'trainer_turnJudged' } };
    await outcome(judge, own, renamed);
    expect(await allowed(bodies.map((body) => [judge, own, body] as const))).toEqual([]);
    expect(await configurations()).toEqual(before);
  });

  it('a user does its own work: it takes from its own consumers, and reads what it is named for', async () => {
    for (const { user, broker } of users) {
      const own = consumers.filter(({ service }) => service === user);
      for (const { stream, durable, filter } of own) {
        await createConsumer(broker, stream, planOf(durable, filter));
        const ask = { data: JSON.stringify({ batch: 1, no_wait: true }), timeoutMs: 20_000, doing: 'pull' };
        const answer = await broker.ask({ ...ask, subject: `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}` });
        expect(answer.headers?.code).toBe(404);
        broker.nc.publish(`$JS.ACK.${stream}.${durable}.1.1.1.1.0`);
        if (stream !== replayStream) await broker.jsm.consumers.info(stream, durable);
      }
      const names = factNames.filter((fact) => mayRead(user, fact));
      expect(await collect(new FactReader(broker).headers(names))).toEqual([]);
      await broker.nc.flush();
    }
    expect(new Set(consumers.map(({ service }) => service)).size).toBe(4);
    expect(factNames.every((fact) => catalogue[fact].consumers.every((service) => mayRead(service, fact)))).toBe(true);
  });
});

/** Makes, changes and re-points a durable, in every way that the broker has. */
function creations(
  broker: Broker,
  stream: string,
  durable: string,
  filters: readonly string[],
): (readonly [Broker, string, object])[] {
  return filters.flatMap((filter) => {
    const config = planOf(durable, filter);
    return ['', 'create', 'update'].flatMap((action) => {
      const body = { stream_name: stream, action, config };
      return [
        [broker, `$JS.API.CONSUMER.CREATE.${stream}.${durable}.${filter}`, body] as const,
        [broker, `$JS.API.CONSUMER.CREATE.${stream}.${durable}`, body] as const,
        [broker, `$JS.API.CONSUMER.CREATE.${stream}`, body] as const,
        [broker, `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.${durable}`, body] as const,
      ];
    });
  });
}
