// When each version began to answer. In: the bucket `routes`. Out: how many have since a moment, both in the broker's time.
// It knows of the newest version, and of those that came while this process ran.
import type { KvBucket } from '@backtalk/kit';
import type { Routes } from '@backtalk/proto/weights';

/** More than any rule asks for. */
const keptMax = 64;

interface Known {
  readonly stable: string;
  /** Oldest first. */
  readonly timesMs: readonly number[];
}

export class VersionTimes {
  private readonly known = new Map<string, Known>();
  private readonly watching = new AbortController();

  constructor(private readonly bucket: Pick<KvBucket<Routes>, 'watch'>) {}

  async start(): Promise<void> {
    await this.bucket.watch(
      '>',
      (change) => {
        if (change.kind !== 'put') return;
        const { policy, stable } = change.value;
        const known = this.known.get(policy);
        if (known?.stable === stable) return;
        this.known.set(policy, { stable, timesMs: [...(known?.timesMs ?? []), change.timeMs].slice(-keptMax) });
      },
      this.watching.signal,
    );
  }

  stop(): void {
    this.watching.abort();
  }

  /** Versions of the policy that began to answer after the moment. */
  since(policy: string, momentMs: number): number {
    const timesMs = this.known.get(policy)?.timesMs ?? [];
    return timesMs.filter((timeMs) => timeMs > momentMs).length;
  }

  /** Versions between this one and the stable one; 0 where one of them is not known. */
  back(policy: string, version: string): number {
    const stable = numberIn(this.known.get(policy)?.stable);
    const own = numberIn(version);
    return stable === undefined || own === undefined ? 0 : stable - own;
  }
}

function numberIn(version = ''): number | undefined {
  const digits = /-v(\d+)$/.exec(version)?.[1];
  return digits === undefined ? undefined : Number(digits);
}
