// Makes a version again from the log, the base and the recipe of its day, as an operator asks, and says whether it is the same, byte for byte.
// Parents whose files were swept are made first, each under its own digest, so that they are there again. One step at a time, and only
// while no batch waits for the worker. In: what is asked. Out: how far it has come.
import { asBacktalkError } from '@backtalk/kit';
import type { TrainResult } from '@backtalk/proto/training';
import type { WeightsFile, WeightsManifest } from '@backtalk/proto/weights';

import { isOfTurn } from '../domain/rehearsal.js';
import type { VersionRecord } from '../domain/version-line.js';
import { trainerErrors } from '../errors.js';
import type { Ledger, LedgerState } from '../outputs/ledger.js';
import type { RebuildProgress } from '../outputs/rebuild-progress.js';
import type { AskedRebuild, PolicyState } from './policy-state.js';
import { buildStep, stepSource } from './step-building.js';
import type { TrainerTools } from './trainer-tools.js';

interface Running {
  readonly asked: AskedRebuild;
  /** Oldest first; the last is what was asked for. */
  readonly left: readonly VersionRecord[];
  readonly of: number;
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
    const now = await this.make(ledger, record, signal);
    const differing = [
      ...filesThatDiffer(before.adapter, now.adapter),
      ...filesThatDiffer(before.trainingState, now.trainingState),
    ];
    if (differing.length > 0) return this.end(asked, 'different', `${record.version}: ${differing.join(', ')}`);
    this.running = { ...running, left };
    if (left.length === 0) return this.end(asked, 'equal', '');
    await this.keep(asked, 'running', '');
  }

  /** Undefined where it was answered before, by this trainer or another. */
  private async begin(ledger: LedgerState, asked: AskedRebuild): Promise<Running | undefined> {
    const known = await this.tools.rebuilds.of(this.state.policy);
    if (known?.asked === asked.id && known.state !== 'running') {
      this.state.asked = undefined;
      return undefined;
    }
    const left = await this.lineage(ledger, asked.version);
    this.running = { asked, left, of: left.length };
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

  private async isWhole({ adapter, trainingState }: WeightsManifest): Promise<boolean> {
    const { blobs } = this.tools.store;
    const there = await Promise.all([...adapter, ...trainingState].map(({ digest }) => blobs.has(digest)));
    return there.every(Boolean);
  }

  private async make(ledger: LedgerState, record: VersionRecord, signal: AbortSignal): Promise<TrainResult> {
    const { version, batch: number } = record;
    const batch = await this.ledger.batch(ledger, number);
    if (batch === undefined) throw trainerErrors.batchGone({ version, batch: number });
    // Another name than its own step had: the worker knows that one, and would not take it again.
    const call = `rebuild-${version}`;
    const source = await stepSource(this.tools, ledger, batch, call, signal);
    const { request, leftOut } = await buildStep(this.tools, source, signal);
    // What was rehearsed and is refused by engines was refused then, too; where it was not, the files differ, which is said.
    const turns = new Set(batch.samples.filter(isOfTurn).map(({ turn }) => turn));
    const gone = leftOut.filter(({ turn }) => turns.has(turn)).map(({ turn }) => turn);
    if (gone.length > 0) throw trainerErrors.turnsGone({ version, turns: gone });
    return this.tools.worker.train({ ...request, call }, { signal });
  }

  private async end(asked: AskedRebuild, state: RebuildProgress['state'], detail: string): Promise<void> {
    await this.keep(asked, state, detail);
    this.running = undefined;
    if (this.state.asked === asked) this.state.asked = undefined;
  }

  private async keep({ id, version }: AskedRebuild, state: RebuildProgress['state'], detail: string): Promise<void> {
    const { of = 0, left = [] } = this.running ?? {};
    const progress = { asked: id, version, state, done: of - left.length, of, detail };
    await this.tools.rebuilds.keep(this.state.policy, progress);
    this.tools.events.versionRebuilt(this.state.policy, progress);
  }
}

/** Names of files that are not the same, or that only one of the two has. */
function filesThatDiffer(before: readonly WeightsFile[], now: readonly WeightsFile[]): string[] {
  const names = new Set([...before, ...now].map(({ name }) => name));
  const digestIn = (files: readonly WeightsFile[], name: string) => files.find((file) => file.name === name)?.digest;
  return [...names].filter((name) => digestIn(before, name) !== digestIn(now, name));
}
