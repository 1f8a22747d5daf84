// What this loader says about its engine, to all that watch: the lease, gRPC watchers, readiness. In: changes. Out: the whole
// state, at each change that changes something.
import type { EngineLease } from '@backtalk/proto/weights';

type Listener = (engine: EngineLease) => void;

export class EngineState {
  private readonly listeners = new Set<Listener>();

  constructor(private engine: EngineLease) {}

  get current(): EngineLease {
    return this.engine;
  }

  change(fields: Partial<EngineLease>): void {
    const next = { ...this.engine, ...fields };
    if (JSON.stringify(next) === JSON.stringify(this.engine)) return;
    this.engine = next;
    for (const listener of [...this.listeners]) listener(next);
  }

  /** Calls `listener` at every change; the returned function ends that. */
  onChange(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The state now and at every change, until the signal aborts. A slow watcher misses states in between. */
  async *watch(signal: AbortSignal): AsyncGenerator<EngineLease> {
    let wake: () => void = () => undefined;
    let seen: EngineLease | undefined;
    const onAbort = () => wake();
    const stop = this.onChange(() => wake());
    signal.addEventListener('abort', onAbort);
    try {
      while (!signal.aborted) {
        if (seen !== this.engine) {
          seen = this.engine;
          yield seen;
        } else await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      stop();
      signal.removeEventListener('abort', onAbort);
    }
  }
}
