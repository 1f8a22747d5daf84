// Turns on disk that the broker did not take in time.
//
// In: facts. Out: a promise that resolves once they are on disk (fsynced), and the segments to drain, oldest first. It
// is append-only and bounded in bytes; what waits to be written counts. Several turns share one fsync. A segment is
// never written again after it was handed out to be drained, or after a write to it failed, so that only its end can be
// torn. It never drops a fact: a segment in which something cannot be read is kept beside, as `.bad`. A disk that refused
// a write is taken for full until a try of its own succeeds.
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { Mutex, type Clock } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import type { GatewayEvents } from '../events.js';
import { decodeRecords, encodeRecord, type SpoolRecord } from '../domain/spool-record.js';

interface SpoolOptions {
  readonly directory: string;
  readonly bytesMax: number;
  readonly clock: Clock;
  readonly events: GatewayEvents;
}

interface Segment {
  readonly path: string;
  bytes: number;
}

interface ReadSegment {
  readonly records: readonly SpoolRecord[];
  /** How many records of it are lost to this reader. */
  readonly unreadable: number;
}

interface Waiting {
  readonly bytes: Buffer;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

const segmentBytesMax = 16 * 1024 * 1024;
const extension = '.spool';
const badExtension = '.bad';
/** Kept for the operator to look into; the oldest give way. */
const badSegmentsMax = 8;
const probeName = 'probe';
/** As much as an answer may take: a disk with a few bytes left is full. */
const probe = Buffer.alloc(256 * 1024);
const probeEveryMs = 1_000;

export class Spool {
  private closed: Segment[] = [];
  private active: (Segment & { readonly file: FileHandle }) | undefined;
  private nextNumber = 1;
  private bytesHeld = 0;
  private waiting: Waiting[] = [];
  private readonly files = new Mutex();
  private diskFailed = false;
  private cancelProbe: () => void = () => undefined;

  private constructor(private readonly options: SpoolOptions) {}

  /** Finds what an earlier life left. */
  static async open(options: SpoolOptions): Promise<Spool> {
    const spool = new Spool(options);
    options.events.spoolBound(options.bytesMax);
    await mkdir(options.directory, { recursive: true });
    const names = (await readdir(options.directory)).sort();
    // A number is used once, also where its segment was set aside.
    const numbers = names.map((name) => Number.parseInt(name, 10)).filter((number) => !Number.isNaN(number));
    spool.nextNumber = Math.max(0, ...numbers) + 1;
    for (const name of names.filter((file) => file.endsWith(extension))) {
      const path = join(options.directory, name);
      const { size } = await stat(path);
      if (size === 0) await rm(path, { force: true });
      if (size === 0) continue;
      spool.closed.push({ path, bytes: size });
      spool.grow(size);
    }
    return spool;
  }

  get isEmpty(): boolean {
    return this.bytesHeld === 0;
  }

  /** Whether so many bytes more would fit. */
  hasRoom(bytes: number): boolean {
    return this.bytesHeld + bytes <= this.options.bytesMax;
  }

  /** Whether so many bytes more would be stored, by all that is known. */
  takes(bytes: number): boolean {
    return !this.diskFailed && this.hasRoom(bytes);
  }

  /** Resolves when the facts are on disk. Rejects with `spool_full` or `spool_failed`. */
  append(records: readonly SpoolRecord[]): Promise<void> {
    const bytes = Buffer.concat(records.map(encodeRecord));
    if (!this.hasRoom(bytes.length))
      return Promise.reject(gatewayErrors.spoolFull({ bytesMax: this.options.bytesMax }));
    this.grow(bytes.length);
    return new Promise((resolve, reject) => {
      this.waiting.push({ bytes, resolve, reject });
      if (this.waiting.length === 1) void this.inTurn(() => this.writeBatch());
    });
  }

  /** The oldest segment, to be read and then discarded; undefined when nothing is left. */
  async oldest(): Promise<Segment | undefined> {
    if (this.closed.length === 0) await this.inTurn(() => this.closeActive());
    return this.closed[0];
  }

  async read(segment: Segment): Promise<ReadSegment> {
    const { records, unreadable, tornBytes } = decodeRecords(await readFile(segment.path));
    if (tornBytes > 0) this.options.events.spoolTorn(tornBytes);
    return { records, unreadable };
  }

  /** Every fact of it is in the log. */
  async discard(segment: Segment): Promise<void> {
    await rm(segment.path, { force: true });
    this.forget(segment);
  }

  /** What could be read of it is in the log. */
  async setAside(segment: Segment, unreadable: number): Promise<void> {
    await rename(segment.path, segment.path + badExtension);
    this.forget(segment);
    this.options.events.spoolRotten(unreadable);
    const { directory } = this.options;
    const bad = (await readdir(directory)).filter((file) => file.endsWith(badExtension)).sort();
    for (const name of bad.slice(0, -badSegmentsMax)) await rm(join(directory, name), { force: true });
  }

  close(): Promise<void> {
    this.cancelProbe();
    return this.inTurn(() => this.closeActive());
  }

  private forget(segment: Segment): void {
    this.closed = this.closed.filter((kept) => kept !== segment);
    this.grow(-segment.bytes);
  }

  private inTurn(piece: () => Promise<void>): Promise<void> {
    return this.files.run(piece).catch((error: unknown) => {
      this.options.events.spoolFailed(gatewayErrors.spoolFailed({}, error));
    });
  }

  /** Everything that came while the last batch was written goes out with one fsync. */
  private async writeBatch(): Promise<void> {
    const batch = this.waiting;
    this.waiting = [];
    try {
      await this.write(batch.map(({ bytes }) => bytes));
      if (this.diskFailed) this.diskIsBack();
      for (const { resolve } of batch) resolve();
    } catch (cause) {
      const error = gatewayErrors.spoolFailed({}, cause);
      this.options.events.spoolFailed(error);
      for (const { bytes, reject } of batch) {
        this.grow(-bytes.length);
        reject(error);
      }
      this.diskRefused();
      await this.closeActive();
    }
  }

  private diskRefused(): void {
    if (this.diskFailed) return;
    this.diskFailed = true;
    this.options.events.spoolDisk('failed');
    this.probeLater();
  }

  private diskIsBack(): void {
    this.diskFailed = false;
    this.cancelProbe();
    this.options.events.spoolDisk('taken');
  }

  private probeLater(): void {
    this.cancelProbe = this.options.clock.timer(probeEveryMs, () => {
      void this.files.run(() => this.tryDisk());
    });
  }

  private async tryDisk(): Promise<void> {
    const path = join(this.options.directory, probeName);
    try {
      await writeFile(path, probe, { flush: true });
      await rm(path);
      if (this.diskFailed) this.diskIsBack();
    } catch {
      // The failure that began this was reported; until a try succeeds there is nothing more to say.
      await rm(path, { force: true }).catch(() => undefined);
      this.probeLater();
    }
  }

  private async write(buffers: readonly Buffer[]): Promise<void> {
    const active = (this.active ??= await this.newSegment());
    let bytes = 0;
    for (const buffer of buffers) bytes += buffer.length;
    const { bytesWritten } = await active.file.writev(buffers);
    if (bytesWritten !== bytes) throw gatewayErrors.spoolFailed();
    await active.file.datasync();
    active.bytes += bytes;
    if (active.bytes >= segmentBytesMax) await this.closeActive();
  }

  private async newSegment(): Promise<Segment & { readonly file: FileHandle }> {
    const name = String(this.nextNumber).padStart(12, '0') + extension;
    this.nextNumber += 1;
    const path = join(this.options.directory, name);
    const file = await open(path, 'ax');
    try {
      // A new file outlives a crash only when its folder is on disk too.
      const directory = await open(this.options.directory, 'r');
      await directory.sync().finally(() => directory.close());
    } catch (error) {
      await file.close();
      await rm(path, { force: true });
      throw error;
    }
    return { path, bytes: 0, file };
  }

  private async closeActive(): Promise<void> {
    const active = this.active;
    if (active === undefined) return;
    this.active = undefined;
    if (active.bytes > 0) this.closed.push(active);
    await active.file.close();
    // Nothing in it was ever confirmed: a write that failed may have left a piece.
    if (active.bytes === 0) await rm(active.path, { force: true });
  }

  private grow(bytes: number): void {
    this.bytesHeld += bytes;
    this.options.events.spoolSize(this.bytesHeld);
  }
}
