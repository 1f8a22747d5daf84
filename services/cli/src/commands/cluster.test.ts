import { writeFileSync } from 'node:fs';
import {
  abandonedBatch,
  askedRebuild,
  FactPublisher,
  FactReader,
  holdLease,
  jsonCodec,
  keyGrant,
  kvBucket,
  readConfig,
  rebuildProgress,
  sha256Hex,
  triedStep,
  wireSecurity,
} from '@backtalk/kit';
import { startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import {
  BatchClosed,
  BatchSample,
  Lesson_State,
  LessonChanged_Action,
  SettledTurn,
  WeightsStaged,
  WeightsStaged_Stage,
  WeightsTrained,
} from '@backtalk/proto/facts';
import { EngineLease } from '@backtalk/proto/weights';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clusterSettings } from '../config.js';
import { forgetLessons } from './rollback.js';
import { printCommand, runCommand, type Place, type Ran } from '../testing/cluster-command.js';

const directory = new TemporaryDirectory('cluster-commands');
let nats: TestNats;

beforeAll(async () => {
  nats = await startNats({ streams: false });
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

const at = (user: Place['user'], environment?: Record<string, string>): Place => ({
  nats,
  user,
  folder: directory.path,
  environment,
});
const backtalk = (user: Place['user'], words: readonly string[], environment?: Record<string, string>): Promise<Ran> =>
  runCommand(at(user, environment), words);

describe('streams ensure', () => {
  it('makes everything once, then has nothing to do, then changes what the environment changes', async () => {
    const bounds = { BACKTALK_TURNS_BYTES_MAX: '50000000', BACKTALK_BLOBS_BYTES_MAX: '100000000' };
    const first = await backtalk('admin', ['streams', 'ensure', '--wait', '5'], bounds);
    expect(first.status).toBe(0);
    expect(done(first)).toEqual(new Set(['created']));
    expect(done(await backtalk('admin', ['streams', 'ensure'], bounds))).toEqual(new Set(['nothing']));
    const changed = await backtalk('admin', ['streams', 'ensure'], { ...bounds, BACKTALK_TURNS_AGE_MAX: '48h' });
    expect(done(changed)).toEqual(new Set(['changed', 'nothing']));
    const { config } = await (await nats.connect('admin')).jsm.streams.info('TURNS');
    expect(config).toMatchObject({ max_age: 48 * 3_600_000 * 1e6, max_bytes: 50_000_000, num_replicas: 1 });
  });

  it('says in one line what is wrong: copies without servers, a number that is none, another user', async () => {
    const copies = await backtalk('admin', ['streams', 'ensure'], { BACKTALK_STREAM_REPLICAS: '3' });
    expect(copies).toMatchObject({ status: 1, values: [{ error: { code: 'stream_copies_impossible' } }] });
    const wrong = await backtalk('admin', ['streams', 'ensure'], { BACKTALK_STREAM_REPLICAS: '2' });
    expect(wrong).toMatchObject({ status: 2 });
    expect(wrong.complaint).toContain('BACKTALK_STREAM_REPLICAS');
    expect(await backtalk('cli', ['streams', 'ensure'])).toMatchObject({ status: 2 });
  });
});

describe('keys', () => {
  it('keys of a cluster are made, shown once, listed by the start of their hash, and revoked', async () => {
    const made = await backtalk('cli', ['keys', 'add', '--user', 'ann', '--no-train', '--concurrency', '3']);
    const [{ key, id } = {}] = made.values;
    expect(key).toMatch(/^bt_\S{32}$/);
    const bucket = kvBucket(await nats.connect('cli'), 'keys', jsonCodec(keyGrant));
    const stored = await bucket.get(sha256Hex(String(key)));
    expect(stored?.value).toMatchObject({ user: 'ann', train: false, limits: { concurrency: 3 } });
    const listed = await backtalk('cli', ['keys', 'list']);
    expect(listed.values).toMatchObject([{ id, user: 'ann' }]);
    expect(JSON.stringify(listed)).not.toContain(String(key));
    expect(await backtalk('cli', ['keys', 'revoke', String(id)])).toMatchObject({ status: 0 });
    expect((await backtalk('cli', ['keys', 'list'])).values).toEqual([]);
    expect(await backtalk('cli', ['keys', 'revoke', String(id)])).toMatchObject({ status: 1 });
  });

  it('keys that the gateway reads from a Secret are not written to where it does not look', async () => {
    const elsewhere = { BACKTALK_KEYS_FROM: 'backtalk-keys' };
    for (const words of [['add'], ['list'], ['revoke', 'abcdef12']]) {
      const { status, values, complaint } = await backtalk('cli', ['keys', ...words], elsewhere);
      expect({ status, values }).toMatchObject({ status: 1, values: [{ error: { code: 'keys_in_secret' } }] });
      expect(complaint).toContain('kubectl edit secret backtalk-keys');
    }
    expect((await backtalk('cli', ['keys', 'list'])).values).toEqual([]);
  });

  it('keys name the policies that they open, and the last revocation says that the endpoint is closed', async () => {
    const add = (...words: string[]) => printCommand(at('cli'), ['keys', 'add', ...words]);
    expect((await add('--tenant', 'acme')).stdout).toContain('opens all policies for local of acme');
    expect((await add('--tenant', 'other', '--policies', 'one, two')).stdout).toContain(
      'opens one, two for local of other',
    );
    expect(await backtalk('cli', ['keys', 'add', '--policies', 'one,,'])).toMatchObject({ status: 2 });
    const { values } = await backtalk('cli', ['keys', 'list']);
    expect(values).toContainEqual(expect.objectContaining({ tenant: 'other', policies: ['one', 'two'] }));
    const table = (await printCommand(at('cli'), ['keys', 'list'])).stdout;
    expect(table).toMatch(/acme +local +acme /);
    expect(table).toMatch(/other +local +one, two /);
    const said: string[] = [];
    for (const { id } of values) said.push((await printCommand(at('cli'), ['keys', 'revoke', String(id)])).stdout);
    expect(said.map((words) => words.includes('every request is refused'))).toEqual([false, true]);
  });

  it('a key can be given by a secret, again and again', async () => {
    const given = { BACKTALK_NEW_KEY: 'sk-from-a-secret-of-the-cluster' };
    await backtalk('cli', ['keys', 'add'], given);
    const again = await backtalk('cli', ['keys', 'add'], given);
    expect(JSON.stringify(again)).not.toContain(given.BACKTALK_NEW_KEY);
    expect((await backtalk('cli', ['keys', 'list'])).values).toHaveLength(1);
  });

  it('keys of a machine go to its file, from which its gateway reads them', async () => {
    const data = directory.path;
    const connection = {
      endpoint: 'http://127.0.0.1:1/v1',
      engine: 'http://127.0.0.1:1',
      policy: 'p',
      baseModel: 'm',
      data,
      natsUrl: 'nats://127.0.0.1:1',
      natsUser: 'cli',
      natsPassword: '',
      blobStore: 'folder:blobs',
      health: {},
    };
    writeFileSync(directory.join('connection.json'), JSON.stringify(connection));
    const [{ id } = {}] = (await backtalk('cli', ['--data', data, 'keys', 'add'])).values;
    expect((await backtalk('cli', ['--data', data, 'keys', 'list'])).values).toMatchObject([{ id }]);
    await backtalk('cli', ['--data', data, 'keys', 'revoke', String(id)]);
    expect((await backtalk('cli', ['--data', data, 'keys', 'list'])).values).toEqual([]);
  });
});

describe('batches', () => {
  it('lists what became of each batch, and gives up the one that is open, once it is sure', async () => {
    const trainer = await nats.connect('trainer');
    const facts = new FactPublisher(trainer);
    const shape = { policy: 'backtalk', samples: [{ turn: 'turn1', tenant: 't', user: 'u' }], why: 'full' };
    const first = BatchClosed.fromPartial({ ...shape, number: 1, version: 'backtalk-v1' });
    const { sequence } = await facts.publish('batchClosed', first, { expectSequence: 0 });
    const made = { policy: 'backtalk', version: 'backtalk-v1', batch: 1, parent: 'backtalk-v0' };
    await facts.publish('weightsTrained', WeightsTrained.fromPartial(made), { expectSequence: 0 });
    const second = BatchClosed.fromPartial({ ...shape, number: 2, version: 'backtalk-v2' });
    const open = await facts.publish('batchClosed', second, { expectSequence: sequence });
    await triedStep(trainer, 'backtalk').put({ batch: 2, tries: 4, code: 'out_of_memory' });
    expect((await backtalk('cli', ['batches'])).values).toMatchObject([
      { number: 1, state: 'trained', tries: 0 },
      { number: 2, state: 'open', tries: 4, version: 'backtalk-v2' },
    ]);
    expect((await printCommand(at('cli'), ['batches'])).stdout).toContain('npx backtalk batches abandon backtalk 2');

    const abandon = (number: string, ...more: string[]) =>
      backtalk('cli', ['batches', 'abandon', 'backtalk', number, ...more]);
    expect(await abandon('2')).toMatchObject({ status: 2, values: [{ error: { code: 'confirmation_needed' } }] });
    expect(await abandon('1', '--yes')).toMatchObject({ status: 1, values: [{ error: { code: 'batch_ended' } }] });
    expect(await abandon('9', '--yes')).toMatchObject({ status: 1, values: [{ error: { code: 'nothing_found' } }] });
    expect(await abandon('x', '--yes')).toMatchObject({ status: 2, values: [{ error: { code: 'bad_argument' } }] });

    // What the trainer does when it is asked.
    const stop = await abandonedBatch(trainer, 'backtalk').watch(() => {
      const given = BatchClosed.fromPartial({ policy: 'backtalk', number: 3, why: 'abandoned' });
      void facts.publish('batchClosed', given, { expectSequence: open.sequence });
    });
    const done = await abandon('2', '--yes');
    expect(done).toMatchObject({ status: 0, values: [{ batch: 2, state: 'given_up', why: 'abandoned' }] });
    stop();
  });
});

describe('rebuild', () => {
  it('a version is asked for, and what the trainer says of it is the answer', async () => {
    const trainer = await nats.connect('trainer');
    const facts = new FactPublisher(trainer);
    const made = { policy: 'again', version: 'again-v1', batch: 1, parent: 'again-v0' };
    await facts.publish('weightsTrained', WeightsTrained.fromPartial(made), { expectSequence: 0 });
    const rebuild = (...words: string[]) => backtalk('cli', ['rebuild', ...words]);
    expect(await rebuild('nonsense')).toMatchObject({ status: 2, values: [{ error: { code: 'bad_argument' } }] });
    expect(await rebuild('again-v7')).toMatchObject({ status: 1, values: [{ error: { code: 'nothing_found' } }] });
    const late = await rebuild('again-v1', '--wait', '1s');
    expect(late).toMatchObject({ status: 1, values: [{ error: { code: 'rebuild_pending' } }] });

    const answer = rebuildProgress(trainer, 'again');
    for (const [state, status] of [
      ['equal', 0],
      ['different', 1],
      ['failed', 1],
    ] as const) {
      const stop = await askedRebuild(trainer, 'again').watch((wish) => {
        if (wish === undefined) return;
        const { id: asked, version } = wish;
        void answer.put({ asked, version, state, done: 2, of: 2, detail: 'x.bin', replayed: [], manifest: '' });
      });
      const answered = await rebuild('again-v1');
      stop();
      expect(answered.status).toBe(status);
      expect(answered.values[0]).toMatchObject({ version: 'again-v1', state, made: 2, detail: 'x.bin' });
    }
  });
});

describe('rollback --forget', () => {
  it('retires the lessons that the version was being taught, by an operator’s word, and no other', async () => {
    const publisher = new FactPublisher(await nats.connect('trainer'));
    const { STATE_ACTIVE, STATE_LEARNED } = Lesson_State;
    const lesson = (id: string, state: Lesson_State) => ({ id, text: id, state, scopeTenant: 't', scopeUser: 'u' });
    const taught = BatchClosed.fromPartial({
      policy: 'forgetful',
      number: 1,
      version: 'forgetful-v1',
      samples: [{ turn: 'turn1', lessons: ['new', 'old'] }],
      lessons: [lesson('new', STATE_ACTIVE), lesson('old', STATE_LEARNED), lesson('other', STATE_ACTIVE)],
    });
    await publisher.publish('batchClosed', taught, { expectSequence: 0 });
    const { url, password } = nats.credentials('cli');
    const environment = { BACKTALK_NATS_URL: url, BACKTALK_NATS_PASSWORD: password, BACKTALK_POLICY: 'forgetful' };
    const { engineUrl: engine, ...cluster } = readConfig(clusterSettings, environment);
    const connection = {
      ...cluster,
      policies: ['forgetful'],
      engine,
      health: {},
      blobs: cluster,
      wire: wireSecurity(cluster),
    };
    expect(await forgetLessons(connection, 'forgetful-v1')).toEqual(['new']);
    expect(await forgetLessons(connection, 'forgetful-v9')).toEqual([]);
    const said = [];
    const reader = new FactReader(await nats.connect('trainer'));
    for await (const { message } of reader.read(['lessonChanged'])) said.push(message);
    const retired = { action: LessonChanged_Action.ACTION_RETIRE, lesson: 'new', tenant: 't', user: 'u', giver: '' };
    expect(said).toMatchObject([retired]);
  });
});

describe('status', () => {
  it('reads a cluster by what its environment names, and misses the parts that hold no lease', async () => {
    const { status, values } = await backtalk('cli', ['status']);
    expect(status).toBe(1);
    const parts = ['gateway', 'loader', 'publisher'].map((part) => ({ part, ready: false }));
    expect(values).toMatchObject([{ policy: 'backtalk', parts, engines: [], deadLetters: 0 }]);
  });

  it('names an engine that is refused, and why, to people and to programs', async () => {
    const url = 'http://10.1.2.3:8000';
    const reason = 'the engine serves other-model in place of smollm2-135m-wishes';
    const hold = holdLease({
      broker: await nats.connect('loader'),
      lease: () => ({
        kind: 'loader',
        instance: 'engine-1',
        grpcAddress: '',
        healthAddress: '',
        engine: EngineLease.fromPartial({ url, reason, ready: false, versions: [] }),
      }),
    });
    await hold.refresh();
    const people = await printCommand(at('cli'), ['status']);
    expect(people.stdout).toContain(`engine ${url}: NOT READY (${reason}), holds the base only\n`);
    const [told] = (await backtalk('cli', ['status'])).values;
    expect(told).toMatchObject({ engines: [{ engine: url, ready: false, reason, versions: [] }] });
    await hold.release();
  });

  it('says which guard kept the last batch from making a version, also after turns were settled, until another is trained', async () => {
    const facts = new FactPublisher(await nats.connect('trainer'));
    const environment = { BACKTALK_POLICY: 'guarded' };
    const detail = 'too_long: 1.00 of the samples are too long (bound 0.5)';
    const samples = [BatchSample.fromPartial({ turn: 'turn1', tenant: 't', user: 'u' })];
    const story: readonly Partial<BatchClosed>[] = [
      { number: 1, version: 'guarded-v1', samples },
      { number: 2, why: 'step_skipped', detail },
      { number: 3, why: 'settled', settled: [SettledTurn.fromPartial({ turn: 'turn2', reason: 'too_long' })] },
      { number: 4, version: 'guarded-v2', samples },
    ];
    const told: unknown[] = [];
    let expectSequence = 0;
    for (const fact of story) {
      const closed = BatchClosed.fromPartial({ policy: 'guarded', ...fact });
      ({ sequence: expectSequence } = await facts.publish('batchClosed', closed, { expectSequence }));
      told.push((await backtalk('cli', ['status'], environment)).values[0]?.['withoutVersion']);
      if (fact.number !== 3) continue;
      const { stdout } = await printCommand(at('cli', environment), ['status']);
      expect(stdout).toContain(`the last batch of guarded made no version: step_skipped: ${detail}`);
      expect(stdout).toContain('turns of guarded too long to be trained on, of late: 1');
      const { values } = await backtalk('cli', ['batches'], environment);
      expect(values[0]).toMatchObject({ state: 'given_up', why: `step_skipped: ${detail}` });
    }
    expect(told).toEqual(['', `step_skipped: ${detail}`, `step_skipped: ${detail}`, '']);
  });

  it('says why training is held, until the lessons change or somebody says resume', async () => {
    const trainer = new FactPublisher(await nats.connect('trainer'));
    const publisher = new FactPublisher(await nats.connect('publisher'));
    const environment = { BACKTALK_POLICY: 'held' };
    const ends = { batchClosed: 0, weightsTrained: 0, weightsStaged: 0 };
    const batch = async (fact: Partial<BatchClosed>) => {
      const closed = BatchClosed.fromPartial({ policy: 'held', ...fact });
      ends.batchClosed = (await trainer.publish('batchClosed', closed, { expectSequence: ends.batchClosed })).sequence;
    };
    const burn = async (number: number, version: string) => {
      await batch({ number, version, samples: [BatchSample.fromPartial({ turn: `turn${number}` })] });
      const made = WeightsTrained.fromPartial({ policy: 'held', version, parent: 'held-v0', batch: number });
      const trained = await trainer.publish('weightsTrained', made, { expectSequence: ends.weightsTrained });
      const stage = WeightsStaged_Stage.STAGE_BURNED;
      const burned = WeightsStaged.fromPartial({ policy: 'held', version, stage, why: 'drift: too far' });
      const staged = await publisher.publish('weightsStaged', burned, { expectSequence: ends.weightsStaged });
      Object.assign(ends, { weightsTrained: trained.sequence, weightsStaged: staged.sequence });
    };
    const held = async () => (await backtalk('cli', ['status'], environment)).values[0]?.['held'];
    await burn(1, 'held-v1');
    await burn(2, 'held-v2');
    expect(await held()).toBe('');
    await burn(3, 'held-v3');
    const why = 'held-v1, held-v2, held-v3 were burned in a row, the last one for drift: too far';
    expect(await held()).toBe(why);
    const { stdout } = await printCommand(at('cli', environment), ['status']);
    expect(stdout).toContain(`learning is HELD: ${why} (npx backtalk resume --policy held)`);
    await backtalk('cli', ['resume'], environment);
    expect(await held()).toBe('');
    for (const number of [4, 5, 6]) await burn(number, `held-v${number}`);
    expect(await held()).toContain('held-v4, held-v5, held-v6');
    await backtalk('cli', ['pause'], environment);
    await batch({ number: 7, why: 'lessons' });
    expect(await held()).toBe('');
    const skip = async (number: number) => {
      await batch({
        number,
        version: `held-v${number}`,
        samples: [BatchSample.fromPartial({ turn: `turn${number}` })],
      });
      await batch({ number: number + 1, why: 'step_skipped', detail: 'kl_step: 1.4 nats' });
    };
    for (const number of [8, 10]) await skip(number);
    expect(await held()).toBe('');
    await skip(12);
    expect(await held()).toBe('3 batches were given up in a row, the last one for step_skipped: kl_step: 1.4 nats');
    await backtalk('cli', ['resume'], environment);
    expect(await held()).toBe('');
    // Counted anew.
    for (const number of [14, 16]) await skip(number);
    expect(await held()).toBe('');
    await skip(18);
    expect(await held()).toContain('3 batches were given up in a row');
  });
});

function done({ values }: Ran): Set<unknown> {
  const [{ streams = [] } = {}] = values as { streams?: { done: string }[] }[];
  return new Set(streams.map((stream) => stream.done));
}
