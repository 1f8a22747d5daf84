// Follows the policy's load set: which versions every loader holds.
//
// In: entries of the KV bucket `load`. Out: the newest set, and a call at each change. Never: an empty set in place of
// one that is not known; until the first entry there is nothing to load.
import type { KvBucket, KvChange } from '@backtalk/kit';
import type { LoadedVersion, LoadSet } from '@backtalk/proto/weights';

export class LoadSetWatch {
  private versions: readonly LoadedVersion[] | undefined;
  private readonly stopping = new AbortController();

  constructor(
    private readonly bucket: KvBucket<LoadSet>,
    private readonly policy: string,
    private readonly onChange: () => void,
  ) {}

  /** Undefined until the bucket has said something. */
  get current(): readonly LoadedVersion[] | undefined {
    return this.versions;
  }

  /** Resolves when the present set is known. */
  async start(): Promise<void> {
    const follow = (change: KvChange<LoadSet>) => {
      this.versions = change.kind === 'put' ? change.value.versions : undefined;
      this.onChange();
    };
    await this.bucket.watch(this.policy, follow, this.stopping.signal);
  }

  stop(): void {
    this.stopping.abort();
  }
}
