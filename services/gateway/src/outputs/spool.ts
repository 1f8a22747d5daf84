// Turns on disk that the broker did not take in time.
//
// In: facts. Out: a promise that resolves once they are on disk (fsynced), and the segments to drain, oldest first. It
// is append-only and bounded in bytes; what waits to be written counts. Several turns share one fsync. A segment is
// never written again after it was handed out to be drained, or after a write to it failed, so that only its end can be
// torn. It never drops a fact.
import { mkdir, open, readdir, readFile, rm, stat, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { Mutex } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import type { GatewayEvents } from '../events.js';
import { decodeRecords, encodeRecord, type SpoolRecord } from '../domain/spool-record.js';

interface SpoolOptions {
  readonly directory: string;
  readonly bytesMax: number;
  readonly events: GatewayEvents;
}

interface Segment {
  readonly path: string;
  bytes: number;
}

interface Waiting {
  readonly bytes: Buffer;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

const segmentBytesMax = 16 * 1024 * 1024;
const extension = '.spool';

export class Spool {
  private closed: Segment[] = [];
  private active: (Segment & { readonly file: FileHandle }) | undefined;
  private nextNumber = 1;
  private bytesHeld = 0;
  private waiting: Waiting[] = [];
  private readonly files = new Mutex();

  private constructor(private readonly options: SpoolOptions) {}

  /** Finds what an earlier life left. */
  static async open(options: SpoolOptions): Promise<Spool> {
    const spool = new Spool(options);
    await mkdir(options.directory, { recursive: true });
    for (const name of (await readdir(options.directory)).filter((file) => file.endsWith(extension)).sort()) {
      const path = join(options.directory, name);
      const { size } = await stat(path);
      spool.closed.push({ path, bytes: size });
      spool.nextNumber = Math.max(spool.nextNumber, Number.parseInt(name, 10) + 1);
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

  async read(segment: Segment): Promise<readonly SpoolRecord[]> {
    const { records, tornBytes } = decodeRecords(await readFile(segment.path));
    if (tornBytes > 0) this.options.events.spoolTorn(tornBytes);
    return records;
  }

  /** Every fact of it is in the log. */
  async discard(segment: Segment): Promise<void> {
    await rm(segment.path, { force: true });
    this.closed = this.closed.filter((kept) => kept !== segment);
    this.grow(-segment.bytes);
  }

  close(): Promise<void> {
    return this.inTurn(() => this.closeActive());
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
      for (const { resolve } of batch) resolve();
    } catch (cause) {
      const error = gatewayErrors.spoolFailed({}, cause);
      this.options.events.spoolFailed(error);
      for (const { bytes, reject } of batch) {
        this.grow(-bytes.length);
        reject(error);
      }
      await this.closeActive();
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
    // A new file outlives a crash only when its folder is on disk too.
    const directory = await open(this.options.directory, 'r');
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
    return { path, bytes: 0, file };
  }

  private async closeActive(): Promise<void> {
    const active = this.active;
    if (active === undefined) return;
    this.active = undefined;
    this.closed.push(active);
    await active.file.close();
  }

  private grow(bytes: number): void {
    this.bytesHeld += bytes;
    this.options.events.spoolSize(this.bytesHeld);
  }
}
