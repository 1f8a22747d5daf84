// Makes versions again from the log, the base and the recipe of their day, as an operator asks, and says whether they are the same, byte for
// byte. One step at a time, and only while no batch waits for the worker. In: what is asked. Out: how far it has come.
// A rebuild makes one version, and before it parents whose files were swept, each under its own digest, so that they are there again. A
// replay makes a row of them, each upon what the one before comes out as now, on request with another recipe; nothing serves what it makes.
import { asBacktalkError, type AskedRebuild, type Clock, type RebuildProgress, type Replayed } from '@backtalk/kit';
import type { UserBaseline } from '@backtalk/proto/facts';
import type { TrainingReport, WeightsFile, WeightsManifest } from '@backtalk/proto/weights';

import type { Recipe } from '../domain/recipe.js';
import { isOfTurn } from '../domain/rehearsal.js';
import type { RejudgedBatch } from '../domain/rejudged-batch.js';
import { guardBounds, trippedGuards } from '../domain/step-guards.js';
import type { VersionRecord } from '../domain/version-line.js';
import { manifestOf, reportOf } from '../domain/weights-manifest.js';
import { trainerErrors } from '../errors.js';
import type { Ledger, LedgerState } from '../outputs/ledger.js';
import type { PolicyState } from './policy-state.js';
import { rejudged } from './rejudging.js';
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
  /** Of a replay with the judge of now, by number of a batch: baselines after it that are others than those of the log. */
  readonly reckoned: ReadonlyMap<number, readonly UserBaseline[]>;
  /** Of a rebuild, what is not as it was. */
  readonly differs?: string;
}

interface Made {
  readonly report: TrainingReport;
  readonly manifest: WeightsManifest;
  /** Of a replay with the judge of now. */
  readonly again?: RejudgedBatch | undefined;
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
    private readonly clock: Clock,
  ) {}

  /** Takes the next step of what is asked; false where there is none, or no training worker is free for it. */
  async next(ledger: LedgerState, signal: AbortSignal): Promise<boolean> {
    const { asked } = this.state;
    if (asked === undefined) return false;
    try {
      const isTaken = await this.step(ledger, asked, signal);
      this.putOff = 0;
      return isTaken;
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

  private async step(ledger: LedgerState, asked: AskedRebuild, signal: AbortSignal): Promise<boolean> {
    const running = this.running?.asked.id === asked.id ? this.running : await this.begin(ledger, asked);
    if (running === undefined) return false;
    const [record, ...left] = running.left;
    if (record !== undefined) {
      const made = await this.make(ledger, record, running, signal);
      if (made === undefined) return false;
      await this.take({ ...running, left }, record, made);
    }
    const { replayed, differs = '', left: rest } = this.running ?? running;
    const other = replayed.find(({ differing }) => differing.length > 0);
    const detail = other === undefined ? differs : `${other.version}: ${other.differing.join(', ')}`;
    if (rest.length === 0) await this.end(asked, detail === '' ? 'equal' : 'different', detail);
    return true;
  }

  /** What one version came out as. A rebuild ends at the first that differs; the next one of a replay is made upon it, equal or not. */
  private async take(running: Running, record: VersionRecord, made: Made): Promise<void> {
    const { asked, parent, left } = running;
    const { manifest, report, again } = made;
    const { store } = this.tools;
    const before = await store.manifest(record.manifestDigest);
    const files = [...manifest.adapter, ...manifest.trainingState];
    const differing = [
      ...filesThatDiffer(before.adapter, manifest.adapter),
      ...filesThatDiffer(before.trainingState, manifest.trainingState),
      ...(before.teacherDigest === manifest.teacherDigest ? [] : ['the model that teaches']),
    ];
    if (asked.from === undefined) {
      const differs = differing.length === 0 ? '' : `${record.version}: ${differing.join(', ')}`;
      this.running = { ...running, differs, left: differs === '' ? left : [] };
      if (differs === '') for (const { digest } of files) this.state.remade.set(digest, this.clock.now());
      else await this.letGo(manifest);
    } else {
      const { measurements } = report;
      const step = { version: record.version, differing, measurements, rejudged: again?.changes };
      const { baselines } = again ?? {};
      const reckoned = new Map(running.reckoned);
      if (baselines !== undefined) reckoned.set(record.batch, baselines);
      const upon = { parent: manifest, manifest: await store.keepManifest(manifest) };
      this.running = { ...running, replayed: [...running.replayed, step], ...upon, reckoned };
    }
    await this.keep(asked, 'running', '');
    if (parent !== undefined) await this.letGo(parent);
  }

  /** Undefined where it was answered before, by this trainer or another. */
  private async begin(ledger: LedgerState, asked: AskedRebuild): Promise<Running | undefined> {
    this.running = undefined;
    const known = (await this.tools.rebuildProgress(this.state.policy).get())?.value;
    if (known?.asked === asked.id && known.state !== 'running') {
      this.state.asked = undefined;
      return undefined;
    }
    const replayed = known === undefined ? undefined : await this.tools.store.names.manifestIfThere(known.manifest);
    if (replayed !== undefined) await this.letGo(replayed);
    const left =
      asked.from === undefined
        ? await this.lineage(ledger, asked.version)
        : await this.row(ledger, asked.from, asked.version);
    this.tools.store.names.clear();
    this.running = { asked, left, of: left.length, replayed: [], parent: undefined, manifest: '', reckoned: new Map() };
    await this.keep(asked, 'running', '');
    return this.running;
  }

  /** The version, and those before it back to the first whose parent has all the files that its step needs, oldest first. */
  private async lineage({ line }: LedgerState, version: string): Promise<VersionRecord[]> {
    const { store } = this.tools;
    const records: VersionRecord[] = [];
    for (let at: string = version; ;) {
      const record = line.get(at);
      if (record === undefined) throw trainerErrors.neverTrained({ version: at });
      records.unshift(record);
      const parent = await store.manifestOfVersion(this.state.policy, record.parent, line);
      if (parent === undefined || (await this.isWhole(parent, record))) return records;
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
    const first = line.get(from) ?? { parent: '', afresh: false };
    const { parent } = first;
    const manifest = await this.tools.store.manifestOfVersion(this.state.policy, parent, line);
    if (manifest !== undefined && !(await this.isWhole(manifest, first)))
      throw trainerErrors.parentSwept({ version: from, parent });
    return records;
  }

  /** What was made and no version has. */
  private async letGo(manifest: WeightsManifest): Promise<void> {
    const { line } = await this.state.ledger();
    await this.tools.store.names.letGo(manifest, line, [this.running?.manifest ?? '']);
  }

  /** Has what the step needs that made a version of it: the adapter alone, where that began without a state. */
  private async isWhole(
    { adapter, trainingState }: WeightsManifest,
    { afresh }: Pick<VersionRecord, 'afresh'>,
  ): Promise<boolean> {
    const { blobs } = this.tools.store;
    const needed = afresh ? adapter : [...adapter, ...trainingState];
    const there = await Promise.all(needed.map(({ digest }) => blobs.has(digest)));
    return there.every(Boolean);
  }

  private async make(
    ledger: LedgerState,
    record: VersionRecord,
    { asked, parent, reckoned }: Running,
    signal: AbortSignal,
  ): Promise<Made | undefined> {
    const { version, batch: number, afresh } = record;
    const batch = await this.ledger.batch(ledger, number);
    if (batch === undefined) throw trainerErrors.batchGone({ version, batch: number });
    // Another name than its own step had, or that of an earlier wish: the worker knows these, and would not take them again.
    const call = `rebuild-${asked.id}-${version}`;
    const { policy } = this.state;
    const held = await this.tools.workers.tryHold({ policy, call }, signal);
    if (held === undefined) return undefined;
    try {
      const again =
        asked.judged === ''
          ? undefined
          : await rejudged(this.tools, [this.ledger, ledger], batch, { asked: asked.judged, reckoned });
      const source = await stepSource(this.tools, ledger, again?.batch ?? batch, held.base, {
        parent,
        recipe: asked.recipe,
        afresh,
      });
      const made = await this.train(held.worker, source, call, signal);
      const skipped = asked.from === undefined ? undefined : skippedBy(source, made.report, this.tools.recipe);
      if (skipped !== undefined) {
        await this.letGo(made.manifest);
        throw trainerErrors.replaySkipped({ version, why: skipped });
      }
      return { ...made, again };
    } finally {
      held.release();
    }
  }

  private async train(
    worker: HeldWorker['worker'],
    source: StepSource,
    call: string,
    signal: AbortSignal,
  ): Promise<Made> {
    const { batch, plan } = source;
    const { version } = batch;
    checkRank(source);
    const step = await buildStep(this.tools, source, signal);
    // What was rehearsed and is refused by engines was refused then, too; where it was not, the files differ, which is said.
    const turns = new Set(batch.samples.filter(isOfTurn).map(({ turn }) => turn));
    const gone = step.leftOut.filter(({ turn }) => turns.has(turn)).map(({ turn }) => turn);
    if (gone.length > 0) throw trainerErrors.turnsGone({ version, turns: gone });
    const result = await worker.train({ ...step.request, call }, { signal });
    return { report: reportOf(result.report, step), manifest: manifestOf(batch, plan, result) };
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
    await this.tools.rebuildProgress(this.state.policy).put(progress);
    this.tools.events.versionRebuilt(this.state.policy, progress);
  }
}

/** An adapter's shape is fixed at a policy's first step, unless a replay begins with that. */
function checkRank({ parent, plan: { training } }: StepSource): void {
  const problems = (['loraRank', 'loraAlpha'] as const).flatMap((name) => {
    const [own, before] = [training[name], parent?.[name]];
    if (parent === undefined || own === before) return [];
    return [`${name} ${own} needs a replay from the policy's first version: ${parent.version} has ${before}.`];
  });
  if (problems.length > 0) throw trainerErrors.replayRefused({ problems });
}

/** Why no version comes of a step, so that nothing is made upon it. What is made again was not skipped. */
function skippedBy({ batch, plan }: StepSource, report: TrainingReport, recipe: Recipe): string | undefined {
  const guards = trippedGuards(batch, report, guardBounds(plan.training, recipe));
  return guards.find(({ action }) => action === 'skip')?.why;
}

/** Names of files that are not the same, or that only one of the two has. */
function filesThatDiffer(before: readonly WeightsFile[], now: readonly WeightsFile[]): string[] {
  const names = new Set([...before, ...now].map(({ name }) => name));
  const digestIn = (files: readonly WeightsFile[], name: string) => files.find((file) => file.name === name)?.digest;
  return [...names].filter((name) => digestIn(before, name) !== digestIn(now, name));
}
