// A trainer among real neighbours: a real broker, a blob folder, the fake training worker, and publishers that speak as the other services.
// In: settings that differ from the laptop's. Out: a running trainer and short words for what tests do and look at.
import { fakePromptIds, startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import {
  abandonedBatch,
  askedRebuild,
  FactPublisher,
  FactReader,
  folderBlobStore,
  holdLease,
  isJsonObject,
  learningSwitch,
  readConfig,
  rebuildProgress,
  storageRoom,
  type BlobStore,
  type Broker,
  type LeaseHold,
  type RebuildProgress,
} from '@backtalk/kit';
import {
  freePort,
  openFacts,
  silentLogger,
  startNats,
  TemporaryDirectory,
  until,
  type TestNats,
} from '@backtalk/kit/testing';
import type { BatchClosed, WeightsStaged_Stage, WeightsTrained } from '@backtalk/proto/facts';
import { LessonChanged, WeightsStaged } from '@backtalk/proto/facts';
import { Lease, WeightsManifest } from '@backtalk/proto/weights';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { trainerSettings } from '../config.js';
import { createTrainer, type Trainer, type TrainerOverrides } from '../service.js';
import { recipePresets } from '../domain/recipe.js';
import { planOf } from '../domain/step-plan.js';
import { StepTries } from '../outputs/step-tries.js';
import { FakeTrainingWorker, type FakeTrainingWorkerOptions, workerToken } from './fake-training-worker.js';
import { completedTurn, judgedTurn, openedTurn, type TurnShape } from './turns.js';

export interface RigOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly worker?: FakeTrainingWorkerOptions;
}

interface Speakers {
  readonly gateway: FactPublisher;
  readonly judge: FactPublisher;
  readonly publisher: FactPublisher;
  readonly operator: Broker;
  readonly trainer: Broker;
}

const testPolicy = 'backtalk';
const shortLease = { ttlMs: 12_000, everyMs: 200 };

export class TrainerRig {
  readonly failures: unknown[] = [];
  private readonly running = new Set<Trainer>();
  private stagedSequence = 0;
  private engineLease: LeaseHold | undefined;
  /** What the engine's loader says that it can do. */
  private capabilities = ['tokenize'];
  private pools = ['serving'];
  private readonly others: { readonly engine: FakeEngine; readonly lease: LeaseHold }[] = [];
  /** What was asked to be rendered, by the ids that came of it. */
  private readonly rendered = new Map<string, string>();

  private constructor(
    readonly nats: TestNats,
    readonly worker: FakeTrainingWorker,
    readonly engine: FakeEngine,
    readonly blobs: BlobStore,
    readonly reader: FactReader,
    private readonly speakers: Speakers,
    private readonly directory: TemporaryDirectory,
    private readonly environment: Readonly<Record<string, string>>,
  ) {}

  static async start({ environment = {}, worker: workerOptions = {} }: RigOptions = {}): Promise<TrainerRig> {
    const durableSuffixes = (environment['BACKTALK_POLICIES'] ?? testPolicy).split(',');
    const nats = await startNats({ durableSuffixes });
    const directory = new TemporaryDirectory('trainer');
    // A port of its own, so that a worker that was killed can come back there.
    const worker = new FakeTrainingWorker({ port: await freePort(), ...workerOptions });
    await worker.start();
    const engine = await startFakeEngine({ baseModel: 'fake' });
    const blobs = folderBlobStore(directory.join('blobs'));
    const as = async (user: 'gateway' | 'judge' | 'publisher') =>
      new FactPublisher(await nats.connect(user), { blobs });
    const operator = await nats.connect('cli');
    const speakers = {
      gateway: await as('gateway'),
      judge: await as('judge'),
      publisher: await as('publisher'),
      operator,
      trainer: await nats.connect('trainer'),
    };
    const reader = new FactReader(operator, blobs);
    const rig = new TrainerRig(nats, worker, engine, blobs, reader, speakers, directory, environment);
    engine.settings.tokenizeHeard = (body) => {
      rig.noteRendered(body);
    };
    await rig.holdEngineLease();
    return rig;
  }

  /** The hints that each teacher of the newest step was shown, by turn. */
  shown(): [string, string[]][] {
    const samples = this.worker.steps.at(-1)?.request.samples ?? [];
    return samples.map(({ turn, teacherPromptIds }) => {
      const [, ...hints] = this.rendered.get(teacherPromptIds.join())?.split('\n\n') ?? [];
      return [turn, hints];
    });
  }

  private noteRendered(body: unknown): void {
    const messages = isJsonObject(body) && Array.isArray(body['messages']) ? body['messages'].filter(isJsonObject) : [];
    const said = messages.map(({ role, content }) => ({ role: String(role), content: String(content) }));
    this.rendered.set(fakePromptIds(said).join(), said.at(-1)?.content ?? '');
  }

  /** As the loader beside the engine says that it is there. */
  async holdEngineLease(): Promise<void> {
    this.engineLease = await this.leaseOf(this.engine, 'one');
  }

  /** Other engines of the same base, each with a loader of its own. */
  async addEngines(count: number): Promise<FakeEngine[]> {
    const others = Array.from({ length: count }, async (_, at) => {
      const engine = await startFakeEngine({ baseModel: 'fake' });
      return { engine, lease: await this.leaseOf(engine, `other${at}`) };
    });
    this.others.push(...(await Promise.all(others)));
    return this.others.map(({ engine }) => engine);
  }

  private async leaseOf({ url, baseModel, adapters }: FakeEngine, instance: string): Promise<LeaseHold> {
    const fixed = { url, dialect: 'vllm', baseModel, maxContext: 4_096, ready: true };
    const leased = () => {
      const { capabilities, pools } = this;
      const engine = { ...fixed, capabilities, pools, versions: adapters.names };
      return Lease.fromPartial({ kind: 'loader', instance, engine });
    };
    const held = holdLease({ broker: await this.nats.connect('loader'), lease: leased });
    await held.refresh();
    return held;
  }

  /** The engine gives scores, and has the version beside its base. */
  async load(version: string): Promise<void> {
    this.capabilities = ['tokenize', 'prompt_logprobs'];
    const folder = this.directory.join(version);
    await mkdir(folder);
    await writeFile(join(folder, 'adapter_config.json'), '{"r":8}');
    await writeFile(join(folder, 'adapter_model.safetensors'), version);
    await this.engine.adapters.load(version, folder, { adaptersMax: 64, rankMax: 64 });
    await this.engineLease?.refresh();
  }

  /** The engine casts votes as well. */
  async judgeWithEngine(): Promise<void> {
    this.pools = ['serving', 'judge'];
    await this.engineLease?.refresh();
  }

  async releaseEngineLease(): Promise<void> {
    await this.engineLease?.release();
    this.engineLease = undefined;
  }

  async startTrainer(
    instance = 'one',
    environment: Readonly<Record<string, string>> = {},
    overrides: Pick<TrainerOverrides, 'clock' | 'logger' | 'rememberedMax' | 'effects' | 'progress'> = {},
  ): Promise<Trainer> {
    const { url, user, password } = this.nats.credentials('trainer');
    const given = { ...this.environment, ...environment };
    // Batches wait for turns, unless a test asks for more.
    const recipe = ['rehearsalSteps=0', given['BACKTALK_RECIPE_SET'] ?? ''].filter((part) => part !== '').join(',');
    const config = readConfig(trainerSettings, {
      BACKTALK_NATS_URL: url,
      BACKTALK_NATS_USER: user,
      BACKTALK_NATS_PASSWORD: password,
      BACKTALK_HEALTH_ADDRESS: '127.0.0.1:0',
      BACKTALK_ACK_WAIT: '2s',
      BACKTALK_BLOB_STORE: `folder:${this.directory.join('blobs')}`,
      BACKTALK_TRAINING_WORKER: this.worker.address,
      BACKTALK_TRAINER_TO_TRAINING_TOKEN: workerToken,
      BACKTALK_STEP_RETRY_MAX: '300ms',
      BACKTALK_INSTANCE: instance,
      BACKTALK_LOG_LEVEL: 'silent',
      ...given,
      BACKTALK_RECIPE_SET: recipe,
    });
    const fail = (error: unknown): void => void this.failures.push(error);
    const trainer = createTrainer(config, { logger: silentLogger, lease: shortLease, fail, ...overrides });
    this.running.add(trainer);
    await trainer.start();
    return trainer;
  }

  async stopTrainer(trainer: Trainer): Promise<void> {
    this.running.delete(trainer);
    await trainer.stop();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.running].map((trainer) => trainer.stop()));
    await this.worker.kill();
    await this.releaseEngineLease();
    await Promise.all(this.others.map(({ lease }) => lease.release()));
    await Promise.all([this.engine, ...this.others.map(({ engine }) => engine)].map((engine) => engine.stop()));
    await this.nats.stop();
    this.directory.remove();
  }

  /** A whole turn: opened, completed, judged. */
  async say(shape: TurnShape): Promise<void> {
    await this.open(shape);
    await this.speakers.gateway.publish('turnCompleted', completedTurn(shape));
    await this.judge(shape);
  }

  /** Its request alone. */
  async open(shape: TurnShape): Promise<void> {
    await this.speakers.gateway.publish('turnOpened', openedTurn(shape));
  }

  async judge(shape: TurnShape): Promise<void> {
    await this.speakers.judge.publish('turnJudged', judgedTurn(shape));
  }

  /** Each a wish that is said to stand. */
  async correct(count: number, shape: Partial<TurnShape> & { readonly name?: string } = {}): Promise<string[]> {
    const { name = 'turn', ...rest } = shape;
    const turns = Array.from({ length: count }, (_, n) => `${name}${n}`);
    for (const turn of turns) await this.say({ hint: 'Answer in one brief sentence.', stands: true, ...rest, turn });
    return turns;
  }

  /** As the gateway stores it. */
  async changeLesson(change: Partial<LessonChanged>): Promise<void> {
    const said = LessonChanged.fromPartial({ tenant: 'tenant0', policy: testPolicy, ...change });
    await this.speakers.gateway.publish('lessonChanged', said);
  }

  async stage(version: string, stage: WeightsStaged_Stage, more: Partial<WeightsStaged> = {}): Promise<void> {
    const fact = WeightsStaged.fromPartial({ policy: testPolicy, version, stage, ...more });
    const { sequence } = await this.speakers.publisher.publish('weightsStaged', fact, {
      expectSequence: this.stagedSequence,
    });
    this.stagedSequence = sequence;
  }

  async pause(paused: boolean): Promise<void> {
    await learningSwitch(this.speakers.operator, testPolicy).put({ paused });
  }

  /** As `backtalk resume` does when that version and that batch are the newest. */
  async resume(resumedAfter: number, resumedAfterBatch = 0): Promise<void> {
    const said = { paused: false, resumedAfter, resumedAfterBatch };
    await learningSwitch(this.speakers.operator, testPolicy).put(said);
  }

  async fillStorage(full: boolean): Promise<void> {
    await storageRoom(this.speakers.operator, testPolicy).put({ full });
  }

  async abandon(batch: number): Promise<void> {
    await abandonedBatch(this.speakers.operator, testPolicy).put({ batch });
  }

  async rebuild(version: string, id: string): Promise<void> {
    await askedRebuild(this.speakers.operator, testPolicy).put({ id, version, recipe: '', judged: '' });
  }

  /** @param recipe what its steps have otherwise than they had */
  async replay(from: string, version: string, id: string, recipe = '', judged = ''): Promise<void> {
    await askedRebuild(this.speakers.operator, testPolicy).put({ id, from, version, recipe, judged });
  }

  /** What the judge of now makes of a turn, or why it does not judge it. */
  async rejudge(shape: TurnShape, asked: string, refused = ''): Promise<void> {
    const judged = judgedTurn(shape);
    const { turn, tenant, user, policy } = judged;
    const again = refused === '' ? judged : undefined;
    await this.speakers.judge.publish('turnRejudged', { turn, tenant, user, policy, asked, judged: again, refused });
  }

  /** How the newest rebuild, or replay, ended. */
  untilRebuilt(id: string): Promise<RebuildProgress> {
    const rebuilt = rebuildProgress(this.speakers.trainer, testPolicy);
    const ended = async () => {
      const progress = (await rebuilt.get())?.value;
      return progress?.asked === id && progress.state !== 'running' ? progress : undefined;
    };
    return until(ended, { what: `The end of rebuild ${id}` });
  }

  async digestsOf(version: string): Promise<string[]> {
    const { manifestDigest } = (await this.versions()).find((one) => one.version === version) ?? { manifestDigest: '' };
    const { adapter, trainingState } = WeightsManifest.decode(await this.blobs.get(manifestDigest));
    return [...adapter, ...trainingState].map(({ digest }) => digest);
  }

  async filesThere(version: string): Promise<boolean> {
    const there = await Promise.all((await this.digestsOf(version)).map((digest) => this.blobs.has(digest)));
    return there.every(Boolean);
  }

  /** As a sweep of old files does. */
  async loseFilesOf(version: string): Promise<string[]> {
    const digests = await this.digestsOf(version);
    for (const digest of digests) await this.blobs.delete(digest);
    this.worker.blobs.clear();
    return digests;
  }

  async loseBatch(number: number): Promise<void> {
    const { jsm } = await this.nats.connect('admin');
    for await (const { message, sequence } of this.reader.read(['batchClosed']))
      if (message.number === number) await jsm.streams.deleteMessage('WEIGHTS', sequence);
  }

  async trimTurns(): Promise<void> {
    await (await this.nats.connect('admin')).jsm.streams.purge('TURNS');
  }

  /** As a store that has lost the payloads of facts. */
  async losePayloads(): Promise<void> {
    const lost: string[] = [];
    for await (const { digest, bytes } of this.blobs.list()) if (bytes > 900_000) lost.push(digest);
    if (lost.length === 0) throw new Error('The store holds no payload.');
    for (const digest of lost) await this.blobs.delete(digest);
  }

  /** The usual plan; out: its digest, as a batch names it. */
  keepPlan(): Promise<string> {
    return this.blobs.put(planOf(recipePresets.tiny.recipe).bytes);
  }

  /** As a trainer leaves them whose process has ended in each of so many tries. */
  async haveTried(batch: number, tries: number): Promise<void> {
    await new StepTries(this.speakers.trainer).keep(testPolicy, { batch, tries, code: '' });
  }

  /** As another trainer would: with the trainer's own rights, behind this one's back. */
  async closeElsewhere(batch: BatchClosed): Promise<void> {
    const last = await this.reader.last('batchClosed', { policy: testPolicy });
    await new FactPublisher(this.speakers.trainer).publish('batchClosed', batch, {
      expectSequence: last?.sequence ?? 0,
    });
  }

  async batches(): Promise<BatchClosed[]> {
    const batches: BatchClosed[] = [];
    for await (const { message } of this.reader.read(['batchClosed'])) batches.push(message);
    return batches;
  }

  async versions(): Promise<WeightsTrained[]> {
    const versions: WeightsTrained[] = [];
    for await (const { message } of this.reader.read(['weightsTrained'])) versions.push(message);
    return versions;
  }

  async untilBatches(count: number): Promise<BatchClosed[]> {
    return until(async () => ((await this.batches()).length >= count ? this.batches() : false), {
      what: `Batch ${count}`,
      everyMs: 50,
    });
  }

  async untilVersions(count: number): Promise<WeightsTrained[]> {
    return until(async () => ((await this.versions()).length >= count ? this.versions() : false), {
      what: `Version ${count}`,
      everyMs: 50,
    });
  }

  async metric(trainer: Trainer, line: RegExp): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${trainer.ports.health}/metrics`, {
      signal: AbortSignal.timeout(5_000),
    });
    const found = (await response.text()).split('\n').find((text) => line.test(text));
    return Number(found?.split(' ').at(-1) ?? Number.NaN);
  }

  /** Judged facts that are neither acked nor yet delivered. */
  async openFacts(): Promise<number> {
    return openFacts(this.speakers.operator, 'TURNS', `trainer_turnJudged_${testPolicy}`);
  }
}
