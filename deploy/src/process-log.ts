// What a process says, kept in its log file. In: its output. Out: a file of bounded size, and the one before it. A full disk
// costs what is said meanwhile; the process never waits for it, and neither ends with it.
import { createWriteStream, renameSync, statSync, type WriteStream } from 'node:fs';
import type { Readable } from 'node:stream';

const bytesMax = 20_000_000;
const lookEveryDefaultMs = 30_000;

export class ProcessLog {
  private stream: WriteStream | undefined;
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly path: string,
    private readonly sources: readonly Readable[],
    lookEveryMs = lookEveryDefaultMs,
  ) {
    this.open();
    this.timer = setInterval(() => {
      if (this.stream !== undefined && sizeOf(this.path) <= bytesMax) return;
      this.letGo()?.end();
      this.open();
    }, lookEveryMs);
    this.timer.unref();
  }

  write(line: string): void {
    this.stream?.write(`${line}\n`);
  }

  end(): void {
    clearInterval(this.timer);
    this.stream?.end();
  }

  private open(): void {
    try {
      if (sizeOf(this.path) > bytesMax) renameSync(this.path, `${this.path}.1`);
    } catch {
      // It grows on until it can be put aside.
    }
    const stream = createWriteStream(this.path, { flags: 'a' });
    stream.on('error', () => {
      // One that was put aside may fail later, and takes nothing from the one after it.
      if (this.stream !== stream) return;
      this.letGo();
      // It is not kept, but it must be read: a full pipe would hold the process up.
      for (const source of this.sources) source.resume();
    });
    for (const source of this.sources) source.pipe(stream, { end: false });
    this.stream = stream;
  }

  private letGo(): WriteStream | undefined {
    const { stream } = this;
    this.stream = undefined;
    if (stream !== undefined) for (const source of this.sources) source.unpipe(stream);
    return stream;
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
