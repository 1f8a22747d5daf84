// The versions of a policy, the next parent, and how far back a turn lies. A burned version is never a parent, nor is anything that was
// built upon one.
import { baseVersion, burnedInARow, isHeld, versionNumber, type Otherwise } from '@backtalk/kit';
import { WeightsStaged_Stage, type WeightsStaged, type WeightsTrained } from '@backtalk/proto/facts';

import type { VersionsSince } from './lesson-progress.js';
import type { VersionsBack } from './sample-worth.js';

export interface VersionRecord {
  readonly version: string;
  readonly parent: string;
  readonly manifestDigest: string;
  readonly trainedAtMs: number;
  /** Number of the batch that it was made from. */
  readonly batch: number;
  /** Its step began without an optimiser's state, though its parent may have one: that was swept by then. */
  readonly afresh: boolean;
}

const undecidedStages = new Set<WeightsStaged_Stage>([
  WeightsStaged_Stage.STAGE_UNSPECIFIED,
  WeightsStaged_Stage.STAGE_CANDIDATE,
  WeightsStaged_Stage.STAGE_CANARY,
]);

/** Burned by the gate, in a row, after which what is not said anew is not taught again. */
const candidatesMax = 2;

export class VersionLine implements VersionsSince {
  /** In the order in which they were trained. */
  private readonly byName = new Map<string, VersionRecord>();
  /** By version; a verdict may be read before the version it is about, since the two are separate subjects. */
  private readonly stages = new Map<string, { readonly stage: WeightsStaged_Stage; readonly sequence: number }>();

  private readonly served = new Set<string>();
  private readonly undoing = new Set<string>();
  /** Until a version or a verdict comes: a policy has thousands of versions in the end, and each is asked about often. */
  private readonly tainted = new Map<string, boolean>();
  private sound: readonly VersionRecord[] | undefined;
  /** By number of the batch that they were made from. */
  private readonly byBatch = new Map<number, VersionRecord>();

  constructor(private readonly policy: string) {}

  trained({ version, parent, manifestDigest, batch, report }: WeightsTrained, trainedAtMs: number): void {
    if (this.byName.has(version)) return;
    const afresh = report?.measurements['optimizer_restored'] === 0;
    const record = { version, parent, manifestDigest, trainedAtMs, batch, afresh };
    this.byName.set(version, record);
    if (!this.byBatch.has(batch)) this.byBatch.set(batch, record);
    this.linesChanged();
  }

  /** A burned version stays burned; otherwise the latest stage holds. */
  staged({ version, stage, undone }: WeightsStaged, sequence: number): void {
    if (stage === WeightsStaged_Stage.STAGE_STABLE) this.served.add(version);
    if (undone) this.undoing.add(version);
    const before = this.stages.get(version);
    if (before !== undefined && (before.sequence >= sequence || this.isBurned(version))) return;
    this.stages.set(version, { stage, sequence });
    this.linesChanged();
  }

  private linesChanged(): void {
    this.tainted.clear();
    this.sound = undefined;
  }

  versions(): readonly VersionRecord[] {
    return [...this.byName.values()];
  }

  /** Number of the newest trained version; names leave gaps. 0 while there is none. */
  newestNumber(): number {
    return Math.max(0, ...this.versions().map(({ version }) => versionNumber(this.policy, version) ?? 0));
  }

  get(version: string): VersionRecord | undefined {
    return this.byName.get(version);
  }

  stageOf(version: string): WeightsStaged_Stage {
    return this.stages.get(version)?.stage ?? WeightsStaged_Stage.STAGE_UNSPECIFIED;
  }

  /** The newest trained version, as long as the publisher has not decided on it. One undecided candidate a policy. */
  undecided(): string | undefined {
    const newest = this.versions().at(-1)?.version;
    return newest !== undefined && undecidedStages.has(this.stageOf(newest)) ? newest : undefined;
  }

  isBurned(version: string): boolean {
    return this.stageOf(version) === WeightsStaged_Stage.STAGE_BURNED;
  }

  /** Built upon a burned version, at any distance. */
  isTainted(version: string): boolean {
    const asked: string[] = [];
    let isTainted = false;
    for (const ancestor of this.ancestry(version)) {
      const known = this.tainted.get(ancestor);
      asked.push(ancestor);
      isTainted = known ?? this.isBurned(ancestor);
      if (known !== undefined || isTainted) break;
    }
    // Between the version and where its ancestry was known or burned, all are alike.
    for (const one of asked) this.tainted.set(one, isTainted);
    return isTainted;
  }

  /** Those that are burned since something is undone that they, or what they were made from, were taught; oldest first. */
  undone(): readonly VersionRecord[] {
    return this.versions().filter(({ version }) => this.undoing.has(version) && this.isBurned(version));
  }

  /** The newest versions, where so many were burned in a row that training rests; otherwise none. */
  heldFor(since: Otherwise, isRepeat: (batch: number) => boolean = () => false): readonly string[] {
    const fates = this.versions().map(({ version, parent, batch }) => {
      const fate = { isBurned: this.isBurned(version), hasServed: this.served.has(version) };
      return { version, parent, batch, ...fate, isRepeat: isRepeat(batch) };
    });
    const row = burnedInARow(this.policy, fates, since);
    return isHeld(row) ? row : [];
  }

  isUndone(batch: number): boolean {
    const made = this.byBatch.get(batch);
    return made !== undefined && this.isTainted(made.version);
  }

  /** Of those that answers may come from: burned ones are no steps on the way to the next parent. */
  versionsAfter(batch: number): number {
    this.sound ??= this.versions().filter(({ version }) => !this.isTainted(version));
    // Batches are numbered as their versions are trained.
    const newest = this.sound.findLastIndex((record) => record.batch <= batch);
    return this.sound.length - 1 - newest;
  }

  nextParent(): string {
    const sound = this.versions().findLast(({ version }) => !this.isTainted(version));
    return sound?.version ?? baseVersion(this.policy);
  }

  /**
   * Whether what was made upon the next parent came to nothing: one that served was burned, by an operator's word or because its answers went
   * wrong; or the gate burned two, which were drawn apart. What it measures of one is a sample.
   * @param lessonsChangedAt number of the newest batch that took in a change of lessons: versions from before it do not count
   * @param isRepeat of a batch that repeats another after an undo: what comes of it says nothing of what is new
   */
  cameToNothing(lessonsChangedAt: number, isRepeat: (batch: number) => boolean = () => false): boolean {
    const versions = this.versions();
    const sound = this.nextParent();
    const parent = versions.findIndex(({ version }) => version === sound);
    const burned = versions
      .slice(parent + 1)
      .filter(({ version, batch }) => batch >= lessonsChangedAt && !isRepeat(batch) && this.isBurned(version));
    return burned.length >= candidatesMax || burned.some(({ version }) => this.served.has(version));
  }

  /** From the version itself back to the base. */
  private *ancestry(version: string): Generator<string> {
    const seen = new Set<string>();
    let at: string | undefined = version;
    while (at !== undefined && !seen.has(at)) {
      seen.add(at);
      yield at;
      at = this.byName.get(at)?.parent;
    }
  }

  versionsBackFrom(parent: string): VersionsBack {
    const line = [...this.ancestry(parent)];
    return (version) => {
      const back = line.indexOf(version);
      if (back >= 0) return back;
      if (version === baseVersion(this.policy)) return line.length;
      if (!this.byName.has(version)) return 'unknown';
      return this.isTainted(version) ? 'burned' : 'unknown';
    };
  }
}
