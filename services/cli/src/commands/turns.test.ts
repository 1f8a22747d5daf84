import { writeFileSync } from 'node:fs';
import { durableOf, FactPublisher, folderBlobStore, keyedHash, tenantHash, userHash, type Broker } from '@backtalk/kit';
import { collect, startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import {
  BatchClosed,
  FeedbackGiven,
  SampleTaken,
  SessionClosed,
  TurnCompleted,
  TurnJudged,
  TurnOpened,
  TurnWithheld,
} from '@backtalk/proto/facts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { printCommand, runCommand, type Place } from '../testing/cluster-command.js';

const directory = new TemporaryDirectory('turns-trim');
const blobs = folderBlobStore(directory.join('blobs'));
const secret = 'a secret of the tests, long enough';
const policy = 'backtalk';
let nats: TestNats;
let admin: Broker;
let place: Place;

beforeAll(async () => {
  nats = await startNats();
  admin = await nats.connect('admin');
  const environment = { BACKTALK_BLOB_STORE: `folder:${directory.join('blobs')}`, BACKTALK_HASH_SECRET: secret };
  place = { nats, user: 'cli', folder: directory.path, environment };
  await fillLog();
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

const trim = (...words: string[]) => runCommand(place, ['turns', 'trim', '--older-than', '0s', ...words]);

interface Said {
  readonly tenant?: string;
  readonly parent?: string;
  readonly large?: boolean;
}

const session = (turn: string) => `session_${turn}`;
const ids = (turn: string, tenant = 'acme') => ({
  turn,
  tenant: tenantHash(secret, tenant),
  user: userHash(secret, tenant, 'ann'),
  policy,
});

async function publisherOf(service: 'gateway' | 'collector' | 'judge' | 'trainer'): Promise<FactPublisher> {
  return new FactPublisher(await nats.connect(service), { blobs });
}

async function say(turn: string, { tenant, parent = '', large = false }: Said = {}): Promise<void> {
  const gateway = await publisherOf('gateway');
  const opened = { ...ids(turn, tenant), provisionalParent: parent, provisionalSession: session(turn) };
  const filling = large ? 'x'.repeat(1_000_000) : '';
  await gateway.publish('turnOpened', TurnOpened.fromPartial({ ...opened, declaredSession: filling }));
  await gateway.publish('turnCompleted', TurnCompleted.fromPartial(ids(turn, tenant)));
}

async function judge(turn: string): Promise<void> {
  await (await publisherOf('judge')).publish('turnJudged', TurnJudged.fromPartial({ ...ids(turn), revision: 0 }));
}

/** Everything of these facts that lies in the log is handled by all who take it. */
async function settleAll(): Promise<void> {
  const taken = [
    ['collector', 'turnOpened', 'turn.opened'],
    ['collector', 'turnCompleted', 'turn.completed'],
    ['judge', 'turnContinued', 'turn.continued'],
    ['judge', 'feedbackGiven', 'feedback.given'],
    ['collector', 'sessionEnded', 'session.ended'],
    ['judge', 'sessionClosed', 'session.closed'],
  ] as const;
  for (const [service, name, subject] of taken) {
    const durable = durableOf(service, name);
    const config = { durable_name: durable, filter_subject: `backtalk.${subject}.>`, ack_policy: 'all' as never };
    const { num_pending: waiting } = await admin.jsm.consumers.add('TURNS', config);
    if (waiting === 0) continue;
    const consumer = await admin.js.consumers.get('TURNS', durable);
    for await (const message of await consumer.fetch({ max_messages: waiting })) await message.ackAck();
  }
}

async function fillLog(): Promise<void> {
  for (const turn of ['trained', 'newest', 'before', 'candidate', 'never-judged']) {
    await say(turn, { parent: turn === 'candidate' ? 'before' : '', large: turn === 'never-judged' });
  }
  await say('other', { tenant: 'other' });
  for (const turn of ['trained', 'newest', 'candidate']) await judge(turn);
  const trainer = await publisherOf('trainer');
  const take = SampleTaken.fromPartial({ ...ids('trained'), batch: 1 });
  await trainer.publish('sampleTaken', take, { expectSequence: 0 });
  const closed = (number: number, turn: string) =>
    BatchClosed.fromPartial({ policy, number, samples: [{ ...ids(turn) }], version: `${policy}-v${String(number)}` });
  const { sequence } = await trainer.publish('batchClosed', closed(1, 'trained'), { expectSequence: 0 });
  await trainer.publish('batchClosed', closed(2, 'newest'), { expectSequence: sequence });
  const collector = await publisherOf('collector');
  const end = (turn: string) => SessionClosed.fromPartial({ ...ids(turn), session: session(turn) });
  for (const turn of ['trained', 'candidate']) await collector.publish('sessionClosed', end(turn));
  const no = { ...ids('never-judged'), session: session('never-judged'), source: 'request' };
  await collector.publish('turnWithheld', TurnWithheld.fromPartial(no));
  const feedback = { ...ids('trained'), score: 1, hasScore: true, digest: keyedHash(secret, 'good') };
  await (await publisherOf('gateway')).publish('feedbackGiven', FeedbackGiven.fromPartial(feedback));
  await settleAll();
  await say('asked-just-now');
  await collector.publish('sessionClosed', end('asked-just-now'));
}

/** Where the data folder says how names are hashed. */
async function trimmedOnOneMachine(tenant: string) {
  const { url, password } = nats.credentials('cli');
  const addresses = { endpoint: 'http://127.0.0.1:1/v1', engine: 'http://127.0.0.1:1', natsUrl: url, health: {} };
  const named = { policy, baseModel: 'm', data: directory.path, natsUser: 'cli', natsPassword: password };
  const connection = { ...addresses, ...named, blobStore: `folder:${directory.join('blobs')}` };
  writeFileSync(directory.join('connection.json'), JSON.stringify(connection));
  writeFileSync(directory.join('secrets.json'), JSON.stringify({ hashSecret: secret }));
  const words = ['--data', directory.path, 'turns', 'trim', '--older-than', '0s', '--tenant', tenant, '--dry-run'];
  return (await runCommand({ ...place, environment: {} }, words)).values;
}

/** What the log holds, as `noun.verb turn`. */
async function held(): Promise<Set<string>> {
  const { state } = await admin.jsm.streams.info('TURNS', { subjects_filter: '>' });
  const turns = ['trained', 'newest', 'before', 'candidate', 'never-judged', 'other', 'asked-just-now'];
  const rows = Object.keys(state.subjects ?? {}).map((subject) => {
    const [, noun = '', verb = '', ...tokens] = subject.split('.');
    const turn = turns.find((name) => tokens.some((token) => token === name || token === session(name)));
    return `${noun}.${verb} ${turn ?? ''}`;
  });
  return new Set(rows);
}

const logBytes = async () => (await admin.jsm.streams.info('TURNS')).state.bytes;
const payloads = async () => (await collect(blobs.list())).length;

const needed = { batch: 1, candidate: 1, in_progress: 1, continued: 1 };

describe('turns trim', () => {
  it('says with --dry-run what would go, to the byte, and deletes nothing', async () => {
    const before = await held();
    const told = await trim('--dry-run');
    expect(told).toMatchObject({ status: 0, values: [{ dryRun: true, turns: 3, payloads: 1, stays: needed }] });
    expect(told.values[0]?.['payloadBytes']).toBeGreaterThan(1_000_000);
    expect(await held()).toEqual(before);
    expect(await payloads()).toBe(1);
  });

  it('takes nothing that is younger, and asks before it deletes', async () => {
    const young = await runCommand(place, ['turns', 'trim', '--older-than', '1h', '--yes']);
    expect(young).toMatchObject({ status: 0, values: [{ turns: 0, facts: 0, bytes: 0 }] });
    expect(await trim()).toMatchObject({ status: 2, values: [{ error: { code: 'confirmation_needed' } }] });
    expect(await runCommand(place, ['turns', 'trim', '--older-than', 'long'])).toMatchObject({ status: 2 });
    expect(await runCommand(place, ['turns', 'trim'])).toMatchObject({ status: 2 });
  });

  it('takes the turns of one tenant or user, by their names', async () => {
    expect((await trim('--dry-run', '--tenant', 'other', '--user', 'bob')).values).toMatchObject([{ turns: 0 }]);
    const told = await trim('--yes', '--tenant', 'other', '--user', 'ann');
    expect(told.values).toMatchObject([{ turns: 1, facts: 2, payloads: 0 }]);
    const facts = await held();
    expect(facts).not.toContain('turn.opened other');
    expect(facts).toContain('turn.opened trained');
    expect(await trimmedOnOneMachine('acme')).toMatchObject([{ turns: 2, stays: needed }]);
    expect(await trimmedOnOneMachine('other')).toMatchObject([{ turns: 0 }]);
    const unnamed = { ...place, environment: {} };
    const refused = await runCommand(unnamed, ['turns', 'trim', '--older-than', '1d', '--tenant', 'other']);
    expect(refused).toMatchObject({ status: 2, values: [{ error: { code: 'hash_secret_needed' } }] });
  });

  it('frees what it says, with what lies beside the log, and leaves what the trainer needs and every "no"', async () => {
    const bytes = await logBytes();
    const told = await trim('--yes');
    expect(told).toMatchObject({ status: 0, values: [{ ended: 'done', turns: 2, payloads: 1, stays: needed }] });
    expect(told.values[0]?.['bytes']).toBe(bytes - (await logBytes()));
    expect(await payloads()).toBe(0);
    expect((await admin.jsm.streams.info('KV_payloads')).state.messages).toBe(0);
    expect(await held()).toEqual(
      new Set([
        ...['turn.opened newest', 'turn.completed newest', 'turn.judged newest'],
        ...['turn.opened before', 'turn.completed before'],
        ...['turn.opened candidate', 'turn.completed candidate', 'turn.judged candidate', 'session.closed candidate'],
        ...['turn.opened asked-just-now', 'turn.completed asked-just-now', 'session.closed asked-just-now'],
        'turn.withheld never-judged',
      ]),
    );
    expect((await trim('--yes')).values).toMatchObject([{ turns: 0, facts: 0, stays: needed }]);
  });

  it('takes what the trainer needs when it is told to, and says so to people', async () => {
    const young = await runCommand(place, ['turns', 'trim', '--older-than', '1h', '--also-needed', '--dry-run']);
    expect(young.values).toMatchObject([{ turns: 0, facts: 0 }]);
    const people = await printCommand(place, ['turns', 'trim', '--older-than', '0s', '--also-needed', '--yes']);
    expect(people.stdout).toMatch(/^4 turns \(12 facts, 0\.0 MB of the log\) are gone\.\n$/);
    expect(await held()).toEqual(new Set(['turn.withheld never-judged']));
  });
});
