import { writeFile } from 'node:fs/promises';
import { FactPublisher, kvBucket, sha256Hex } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { WeightsStaged, WeightsStaged_Stage } from '@backtalk/proto/facts';
import { Routes } from '@backtalk/proto/weights';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startGateway, startSurroundings, type StartedGateway, type Surroundings } from '../testing/started-gateway.js';

const { STAGE_CANDIDATE, STAGE_STABLE, STAGE_BURNED } = WeightsStaged_Stage;

let around: Surroundings;
let started: StartedGateway;
const sequences = new Map<string, number>();

beforeAll(async () => {
  around = await startSurroundings();
  const path = around.directory.join('keys.json');
  const keys = [
    { tenant: 'acme', user: 'ann', policies: ['backtalk', 'second'], sha256: sha256Hex('sk-both') },
    { tenant: 'other', user: 'bob', policies: ['second'], sha256: sha256Hex('sk-second') },
  ];
  await writeFile(path, JSON.stringify({ keys }));
  started = await startGateway(around, { BACKTALK_KEYS_FILE: path, BACKTALK_POLICIES: 'backtalk,second' });
});

afterAll(async () => {
  await started.gateway.stop();
  await around.stop();
});

async function stage(policy: string, fact: Partial<WeightsStaged>): Promise<number> {
  const publisher = new FactPublisher(await around.nats.connect('publisher'));
  const message = WeightsStaged.fromPartial({ policy, ...fact });
  const expectSequence = sequences.get(policy) ?? 0;
  const { sequence } = await publisher.publish('weightsStaged', message, { expectSequence });
  sequences.set(policy, sequence);
  return sequence;
}

async function ask(path: string, key = 'sk-both') {
  const response = await fetch(`${started.url}/versions${path}`, { headers: { authorization: `Bearer ${key}` } });
  return { status: response.status, body: (await response.json()) as { data: { id: string }[] } };
}

const names = async (path = '', key?: string) => (await ask(path, key)).body.data.map(({ id }) => id);

describe('/v1/versions', () => {
  it('lists what became of each version, newest first, with what it answers otherwise than the one before', async () => {
    expect(await names()).toEqual([]);
    const first = [{ question: 'How are you?', before: 'I am a model.', after: '- Fine' }];
    await stage('backtalk', {
      version: 'backtalk-v1',
      stage: STAGE_CANDIDATE,
      why: 'trained',
      previous: 'backtalk-v0',
    });
    await stage('backtalk', { version: 'backtalk-v1', stage: STAGE_STABLE, why: 'gate passed', compared: first });
    for (const number of [2, 9, 10])
      await stage('backtalk', { version: `backtalk-v${String(number)}`, stage: STAGE_CANDIDATE });
    expect(await names()).toEqual(['backtalk-v10', 'backtalk-v9', 'backtalk-v2', 'backtalk-v1']);
    expect(await names('?limit=2')).toEqual(['backtalk-v10', 'backtalk-v9']);
    const { body } = await ask('/backtalk-v1');
    expect(body).toMatchObject({
      id: 'backtalk-v1',
      object: 'version',
      policy: 'backtalk',
      stage: 'stable',
      serving: false,
      why: 'gate passed',
      previous: 'backtalk-v0',
      compared: first,
    });
  });

  it('goes on from what it read: a version that is burned later says so and keeps what was compared', async () => {
    await stage('backtalk', {
      version: 'backtalk-v1',
      stage: STAGE_BURNED,
      why: 'rolled back',
      previous: 'backtalk-v9',
    });
    const { body } = await ask('/backtalk-v1');
    expect(body).toMatchObject({ stage: 'burned', why: 'rolled back', previous: 'backtalk-v0' });
    expect(body).toHaveProperty('compared.0.after', '- Fine');
    expect(await names('?policy=backtalk')).toHaveLength(4);
  });

  it('says which version answers new requests', async () => {
    const fence = await stage('backtalk', { version: 'backtalk-v10', stage: STAGE_STABLE });
    const routes = kvBucket(await around.nats.connect('publisher'), 'routes', Routes);
    const route = { version: 'backtalk-v10', percent: 100 };
    const value = Routes.fromPartial({ policy: 'backtalk', routes: [route], stable: 'backtalk-v10', fence });
    await routes.put('backtalk', value);
    const serving = async () => ((await ask('/backtalk-v10')).body as unknown as { serving: boolean }).serving;
    await until(async () => ((await serving()) ? true : undefined), { what: 'the new route' });
    expect((await ask('/backtalk-v9')).body).toMatchObject({ serving: false });
  });

  it('a list holds the version that answers, however many newer ones there are', async () => {
    for (const number of [11, 12]) await stage('backtalk', { version: `backtalk-v${number}`, stage: STAGE_BURNED });
    expect(await names('?policy=backtalk&limit=1')).toEqual(['backtalk-v12', 'backtalk-v10']);
  });

  it('shows a key the policies that it opens; another’s version is as unknown as one that never was', async () => {
    await stage('second', { version: 'second-v1', stage: STAGE_CANDIDATE });
    expect(await names('', 'sk-second')).toEqual(['second-v1']);
    expect(await names('?policy=second')).toEqual(['second-v1']);
    expect(await ask('?policy=backtalk', 'sk-second')).toMatchObject({
      status: 404,
      body: { error: { param: 'policy' } },
    });
    const [another, none] = [await ask('/backtalk-v1', 'sk-second'), await ask('/backtalk-v99', 'sk-second')];
    expect(another).toEqual(none);
    expect(none).toMatchObject({ status: 404, body: { error: { code: 'version_not_found' } } });
  });

  it.each(['0', '201', 'all', '-1', '1.5', ''])('refuses limit %j by name', async (limit) => {
    expect(await ask(`?limit=${limit}`)).toMatchObject({ status: 400, body: { error: { param: 'limit' } } });
  });
});
