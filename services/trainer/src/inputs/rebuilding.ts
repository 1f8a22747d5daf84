// Makes versions again from the log, the base and the recipe of their day, as an operator asks, and says whether they are the same, byte for
// byte. One step at a time, and only while no batch waits for the worker. In: what is asked. Out: how far it has come.
// A rebuild makes one version, and before it parents whose files were swept, each under its own digest, so that they are there again. A
// replay makes a row of them, each upon what the one before comes out as now, on request with another recipe; nothing serves what it makes.
import { asBacktalkError } from '@backtalk/kit';
import type { TrainResult } from '@backtalk/proto/training';
import type { WeightsFile, WeightsManifest } from '@backtalk/proto/weights';

import { isOfTurn } from '../domain/rehearsal.js';
import type { VersionRecord } from '../domain/version-line.js';
import { manifestOf } from '../domain/weights-manifest.js';
import { trainerErrors } from '../errors.js';
import type { Ledger, LedgerState } from '../outputs/ledger.js';
import type { RebuildProgress, Replayed } from '../outputs/rebuild-progress.js';
import type { AskedRebuild, PolicyState } from './policy-state.js';
import { buildStep, stepSource, type StepSource } from './step-building.js';
import type { TrainerTools } from './trainer-tools.js';
import type { HeldWorker } from './worker-pool.js';

interface Running {
  readonly asked: AskedRebuild;
  /** Oldest first; the last is what was asked for. */
  readonly left: readonly VersionRecord[];
  readonly of: number;
  /** Of a replay. */
  readonly replayed: readonly Replayed[];
  /** Of a replay, what the version before came out as, and the digest of that manifest. */
  readonly parent: WeightsManifest | undefined;
  readonly manifest: string;
}

interface Made {
  readonly result: TrainResult;
  readonly manifest: WeightsManifest;
}

const triesMax = 6;

export class Rebuilding {
  private running: Running | undefined;
  /** In a row, for what may pass: an engine or the worker is away or busy. */
  private putOff = 0;

  constructor(
    private readonly tools: TrainerTools,
    private readonly state: PolicyState,
    private readonly ledger: Ledger,
  ) {}

  /** Takes the next step of what is asked; false where there is none. */
  async next(ledger: LedgerState, signal: AbortSignal): Promise<boolean> {
    const { asked } = this.state;
    if (asked === undefined) return false;
    try {
      await this.step(ledger, asked, signal);
      this.putOff = 0;
    } catch (thrown) {
      signal.throwIfAborted();
      const error = asBacktalkError(thrown);
      this.putOff += 1;
      // Without an end, an old wish of an operator would keep the ledger in trouble.
      if (error.retry === 'later' && this.putOff < triesMax) throw error;
      this.putOff = 0;
      await this.end(asked, 'failed', error.message);
    }
    return true;
  }

  private async step(ledger: LedgerState, asked: AskedRebuild, signal: AbortSignal): Promise<void> {
    const running = this.running?.asked.id === asked.id ? this.running : await this.begin(ledger, asked);
    const [record, ...left] = running?.left ?? [];
    if (running === undefined || record === undefined) return;
    const before = await this.tools.store.manifest(record.manifestDigest);
    const made = await this.make(ledger, record, running, signal);
    const differing = [
      ...filesThatDiffer(before.adapter, made.manifest.adapter),
      ...filesThatDiffer(before.trainingState, made.manifest.trainingState),
    ];
    if (asked.from !== undefined) return this.replayed({ ...running, left }, record, made, differing);
    if (differing.length > 0) return this.end(asked, 'different', `${record.version}: ${differing.join(', ')}`);
    this.running = { ...running, left };
    if (left.length === 0) return this.end(asked, 'equal', '');
    await this.keep(asked, 'running', '');
  }

  /** The next one of a replay is made upon it, equal or not. */
  private async replayed(running: Running, record: VersionRecord, made: Made, differing: string[]): Promise<void> {
    const { asked, left, parent } = running;
    const measurements = made.result.report?.measurements ?? {};
    const replayed = [...running.replayed, { version: record.version, differing, measurements }];
    const manifest = await this.tools.store.keepManifest(made.manifest);
    this.running = { ...running, replayed, parent: made.manifest, manifest };
    if (parent !== undefined) await this.letGo(parent);
    if (left.length > 0) return this.keep(asked, 'running', '');
    const first = replayed.find((one) => one.differing.length > 0);
    if (first === undefined) return this.end(asked, 'equal', '');
    return this.end(asked, 'different', `${first.version}: ${first.differing.join(', ')}`);
  }

  /** Undefined where it was answered before, by this trainer or another. */
  private async begin(ledger: LedgerState, asked: AskedRebuild): Promise<Running | undefined> {
    const known = await this.tools.rebuilds.of(this.state.policy);
    if (known?.asked === asked.id && known.state !== 'running') {
      this.state.asked = undefined;
      return undefined;
    }
    if (known !== undefined && known.manifest !== '') await this.letGo(await this.tools.store.manifest(known.manifest));
    const left =
      asked.from === undefined
        ? await this.lineage(ledger, asked.version)
        : await this.row(ledger, asked.from, asked.version);
    this.running = { asked, left, of: left.length, replayed: [], parent: undefined, manifest: '' };
    await this.keep(asked, 'running', '');
    return this.running;
  }

  /** The version, and those before it back to the first whose parent has all its files, oldest first. */
  private async lineage({ line }: LedgerState, version: string): Promise<VersionRecord[]> {
    const { store } = this.tools;
    const records: VersionRecord[] = [];
    for (let at: string = version; ;) {
      const record = line.get(at);
      if (record === undefined) throw trainerErrors.neverTrained({ version: at });
      records.unshift(record);
      const parent = await store.manifestOfVersion(this.state.policy, record.parent, line);
      if (parent === undefined || (await this.isWhole(parent))) return records;
      at = record.parent;
    }
  }

  /** From one version to another that was made upon it, at any distance, oldest first. */
  private async row({ line }: LedgerState, from: string, to: string): Promise<VersionRecord[]> {
    const records: VersionRecord[] = [];
    for (let at = to; ; at = records[0]?.parent ?? '') {
      const record = line.get(at);
      if (record === undefined && at === to) throw trainerErrors.neverTrained({ version: to });
      if (record === undefined) throw trainerErrors.notBefore({ from, to });
      records.unshift(record);
      if (at === from) break;
    }
    const parent = line.get(from)?.parent ?? '';
    const manifest = await this.tools.store.manifestOfVersion(this.state.policy, parent, line);
    if (manifest !== undefined && !(await this.isWhole(manifest)))
      throw trainerErrors.parentSwept({ version: from, parent });
    return records;
  }

  /** What a replay made and no version has: it would lie in the store without an end. */
  private async letGo({ version, adapter, trainingState }: WeightsManifest): Promise<void> {
    const { store } = this.tools;
    const { line } = await this.state.ledger();
    const digest = line.get(version)?.manifestDigest;
    const served = digest === undefined ? undefined : await store.manifest(digest);
    const own = new Set([...(served?.adapter ?? []), ...(served?.trainingState ?? [])].map((file) => file.digest));
    // What is no tensor may be the same file in many versions.
    const tensors = [...adapter, ...trainingState].filter(({ name }) => name.endsWith('.safetensors'));
    for (const file of tensors) if (!own.has(file.digest)) await store.blobs.delete(file.digest);
  }

  private async isWhole({ adapter, trainingState }: WeightsManifest): Promise<boolean> {
    const { blobs } = this.tools.store;
    const there = await Promise.all([...adapter, ...trainingState].map(({ digest }) => blobs.has(digest)));
    return there.every(Boolean);
  }

  private async make(
    ledger: LedgerState,
    record: VersionRecord,
    { asked, parent }: Running,
    signal: AbortSignal,
  ): Promise<Made> {
    const { version, batch: number } = record;
    const batch = await this.ledger.batch(ledger, number);
    if (batch === undefined) throw trainerErrors.batchGone({ version, batch: number });
    // Another name than its own step had, or that of an earlier wish: the worker knows these, and would not take them again.
    const call = `rebuild-${asked.id}-${version}`;
    const { policy } = this.state;
    const { worker, base, release } = await this.tools.workers.hold({ policy, call }, signal);
    try {
      const source = await stepSource(this.tools, ledger, batch, base, { parent, recipe: asked.recipe });
      const result = await this.train(worker, source, call, signal);
      return { result, manifest: manifestOf(batch, source.plan, result) };
    } finally {
      release();
    }
  }

  private async train(
    worker: HeldWorker['worker'],
    source: StepSource,
    call: string,
    signal: AbortSignal,
  ): Promise<TrainResult> {
    const { batch } = source;
    checkRank(source);
    const { request, leftOut } = await buildStep(this.tools, source, signal);
    // What was rehearsed and is refused by engines was refused then, too; where it was not, the files differ, which is said.
    const turns = new Set(batch.samples.filter(isOfTurn).map(({ turn }) => turn));
    const gone = leftOut.filter(({ turn }) => turns.has(turn)).map(({ turn }) => turn);
    if (gone.length > 0) throw trainerErrors.turnsGone({ version: batch.version, turns: gone });
    return worker.train({ ...request, call }, { signal });
  }

  private async end(asked: AskedRebuild, state: RebuildProgress['state'], detail: string): Promise<void> {
    await this.keep(asked, state, detail);
    this.running = undefined;
    if (this.state.asked === asked) this.state.asked = undefined;
  }

  private async keep({ id, version }: AskedRebuild, state: RebuildProgress['state'], detail: string): Promise<void> {
    const { of = 0, left = [], replayed = [], manifest = '' } = this.running ?? {};
    const done = of - left.length;
    const progress = { asked: id, version, state, done, of, detail, replayed: [...replayed], manifest };
    await this.tools.rebuilds.keep(this.state.policy, progress);
    this.tools.events.versionRebuilt(this.state.policy, progress);
  }
}

/** An adapter's shape is fixed at a policy's first step, unless a replay begins with that. */
function checkRank({ parent, plan: { training } }: StepSource): void {
  if (parent === undefined || parent.loraRank === training.loraRank) return;
  const problem = `loraRank ${training.loraRank} needs a replay from the policy's first version: ${parent.version} has ${parent.loraRank}.`;
  throw trainerErrors.replayRefused({ problems: [problem] });
}

/** Names of files that are not the same, or that only one of the two has. */
function filesThatDiffer(before: readonly WeightsFile[], now: readonly WeightsFile[]): string[] {
  const names = new Set([...before, ...now].map(({ name }) => name));
  const digestIn = (files: readonly WeightsFile[], name: string) => files.find((file) => file.name === name)?.digest;
  return [...names].filter((name) => digestIn(before, name) !== digestIn(now, name));
}
