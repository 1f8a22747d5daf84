// The versions that the engine holds: loads and unloads them, and knows which are warm. In: versions by name and manifest
// digest. Out: an engine that holds them and has answered with them once. One load or unload at a time. Both may be
// repeated: what is done already is done.
import { judgeCapture, warmUpRequest, type CallOptions, type EngineClient } from '@backtalk/dialects';
import { asBacktalkError, isBacktalkError, Mutex, versionNumber, type Clock } from '@backtalk/kit';
import { loaderErrors } from '../errors.js';
import type { LoaderEvents, PrepareTimes } from '../events.js';
import type { WantedVersion, WeightsFiles } from './weights-files.js';

export interface LoadingOptions {
  readonly clock: Clock;
  readonly events: LoaderEvents;
  /** For one call to the engine. */
  readonly deadlineMs: number;
}

const waitingMax = 32;
const already: PrepareTimes = { fetchSeconds: 0, loadSeconds: 0, warmUpSeconds: 0, already: true };

export class LoadedAdapters {
  private readonly mutex = new Mutex();
  /** Manifest digest by version, of those that were checked and are warm. */
  private readonly digests = new Map<string, string>();
  private found: readonly string[] = [];
  /** Lost by the engine: their folders are there as long as they are wanted. */
  private readonly away = new Set<string>();

  constructor(
    private readonly engine: EngineClient,
    private readonly files: WeightsFiles,
    private readonly options: LoadingOptions,
    private readonly onChange: (versions: readonly string[]) => void,
  ) {}

  get versions(): string[] {
    return [...this.digests.keys()];
  }

  /** Versions on the engine that an earlier process loaded. They count once they are prepared. */
  get unchecked(): readonly string[] {
    return this.found;
  }

  prepare(wanted: WantedVersion, baseModel: string, signal?: AbortSignal): Promise<PrepareTimes> {
    const { policy, version, manifestDigest } = wanted;
    const { events } = this.options;
    // It becomes part of a path, and manifests are written by others.
    if ((versionNumber(policy, version) ?? 0) < 1)
      return Promise.reject(loaderErrors.versionInvalid({ version, policy }));
    return this.inTurn(async () => {
      const digest = this.digests.get(version);
      if (digest === manifestDigest) return already;
      if (digest !== undefined) throw loaderErrors.versionConflict({ version });
      try {
        const times = await this.load(wanted, baseModel, signal);
        events.prepared(version, times);
        return times;
      } catch (thrown) {
        events.prepareFailed(version, asBacktalkError(thrown));
        throw thrown;
      }
    });
  }

  /**
   * True when the engine held it. Its turn may come minutes later, behind a load.
   * @param isWanted by then it stays, and `version_wanted` is thrown
   */
  retire(version: string, isWanted: () => boolean = () => false): Promise<boolean> {
    return this.inTurn(async () => {
      if (!this.digests.has(version) && !this.found.includes(version)) return false;
      if (isWanted()) throw loaderErrors.versionWanted({ version });
      // First no gateway is told of it any more.
      this.digests.delete(version);
      this.onChange(this.versions);
      this.found = this.found.filter((name) => name !== version);
      try {
        await this.unload(version);
      } catch (thrown) {
        this.found = [...this.found, version];
        throw thrown;
      }
      await this.files.removeAll(version);
      this.options.events.retired(version);
      return true;
    });
  }

  /**
   * Asks the engine which of our names it holds; returns those that it has lost.
   * @param isWanted then its folder stays: it is loaded again from there, by SGLang itself as soon as a request names it
   */
  compare(
    isOurs: (name: string) => boolean,
    isWanted: (name: string) => boolean,
    options: CallOptions,
  ): Promise<readonly string[]> {
    return this.inTurn(async () => {
      const models = await this.engine.models(options);
      const present = new Set(models.map(({ id }) => id).filter(isOurs));
      const lost = this.versions.filter((version) => !present.has(version));
      for (const version of lost) {
        this.digests.delete(version);
        this.away.add(version);
      }
      for (const version of [...this.away].filter((name) => present.has(name) || !isWanted(name))) {
        if (!present.has(version)) await this.files.removeAll(version);
        this.away.delete(version);
      }
      this.found = [...present].filter((name) => !this.digests.has(name));
      return lost;
    });
  }

  /** Beyond the bound it refuses, so that nothing piles up. */
  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    const waiting = this.mutex.size;
    if (waiting >= waitingMax) throw loaderErrors.loaderBusy({ waiting });
    return this.mutex.run(work);
  }

  private async load(wanted: WantedVersion, baseModel: string, signal?: AbortSignal): Promise<PrepareTimes> {
    const { clock, events, deadlineMs } = this.options;
    const { version, manifestDigest } = wanted;
    const startMs = clock.now();
    const wasThere = this.found.includes(version);
    const folder = await this.files.fetch(wanted, baseModel);
    const fetchedMs = clock.now();
    let loadedMs: number;
    try {
      await this.loadFrom(folder, version, { deadlineMs, signal });
      loadedMs = clock.now();
      const { capture } = await this.engine.chat(warmUpRequest(version), { deadlineMs, signal });
      const { reasons } = judgeCapture(capture);
      if (reasons.length > 0) throw loaderErrors.warmUpFailed({ version, why: reasons.join(', ') });
    } catch (thrown) {
      // One that an earlier process loaded may be answering: that the engine is busy, or that this one ends, says nothing of the weights.
      if (wasThere && !isBacktalkError(thrown, 'weights_warm_up_failed')) throw thrown;
      // The next life of this loader finds what is there.
      if (signal?.aborted === true) throw thrown;
      // A version that does not answer is not left on the engine: it would take the room that another needs.
      await this.unload(version).then(
        () => this.files.remove(wanted),
        (error: unknown) => events.unloadFailed(version, asBacktalkError(error)),
      );
      throw thrown;
    }
    this.digests.set(version, manifestDigest);
    this.found = this.found.filter((name) => name !== version);
    this.onChange(this.versions);
    return {
      fetchSeconds: (fetchedMs - startMs) / 1_000,
      loadSeconds: (loadedMs - fetchedMs) / 1_000,
      warmUpSeconds: (clock.now() - loadedMs) / 1_000,
      already: false,
    };
  }

  /** A name that is taken counts as ours where the engine says that it read it from this folder, whose name has the digest. */
  private async loadFrom(folder: string, version: string, options: CallOptions): Promise<void> {
    const { engine } = this;
    const isLoaded = await engine
      .loadAdapter(version, folder, options)
      .then(() => true, unless('adapter_already_loaded'));
    if (isLoaded === true) return;
    const held = (await engine.models(options)).find(({ id }) => id === version);
    if (held?.root === folder) return;
    this.options.events.strangerFound(version);
    await this.unload(version);
    await engine.loadAdapter(version, folder, options);
  }

  private async unload(version: string): Promise<void> {
    const { deadlineMs } = this.options;
    await this.engine.unloadAdapter(version, { deadlineMs }).catch(unless('adapter_not_loaded'));
  }
}

/** Throws all errors on but this one, which says that the work is done already. */
function unless(code: string): (error: unknown) => void {
  return (error) => {
    if (!isBacktalkError(error, code)) throw error;
  };
}
