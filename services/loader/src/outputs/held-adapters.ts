// The versions that the engine holds: puts them there, takes them away, and knows which are warm.
//
// In: versions by name and manifest digest. Out: an engine that holds them and has answered with them once.
// One load or unload at a time. Both may be repeated: what is done already is done.
import { judgeCapture, warmUpRequest, type CallOptions, type EngineClient } from '@backtalk/dialects';
import { asBacktalkError, isBacktalkError, type Clock } from '@backtalk/kit';
import { loaderErrors } from '../errors.js';
import type { LoaderEvents, PrepareTimes } from '../events.js';
import { Turnstile } from './turnstile.js';
import type { WantedVersion, WeightsFiles } from './weights-files.js';

export interface HeldAdaptersParts {
  readonly engine: EngineClient;
  readonly files: WeightsFiles;
  readonly clock: Clock;
  readonly events: LoaderEvents;
  readonly engineDeadlineMs: number;
  readonly onChange: (versions: readonly string[]) => void;
}

const already: PrepareTimes = { fetchSeconds: 0, loadSeconds: 0, warmUpSeconds: 0, already: true };

export class HeldAdapters {
  private readonly turnstile = new Turnstile();
  /** Manifest digest by version, of those that were checked and are warm. */
  private readonly held = new Map<string, string>();
  /** Versions on the engine that this process did not bring: an earlier one did. They count once they are prepared. */
  private strangers: readonly string[] = [];

  constructor(private readonly parts: HeldAdaptersParts) {}

  get versions(): string[] {
    return [...this.held.keys()];
  }

  get unchecked(): readonly string[] {
    return this.strangers;
  }

  prepare(wanted: WantedVersion, baseModel: string, signal?: AbortSignal): Promise<PrepareTimes> {
    return this.turnstile.pass(async () => {
      const digest = this.held.get(wanted.version);
      if (digest === wanted.manifestDigest) return already;
      if (digest !== undefined) throw loaderErrors.versionConflict({ version: wanted.version });
      try {
        const times = await this.bring(wanted, baseModel, signal);
        this.parts.events.prepared(wanted.version, times);
        return times;
      } catch (thrown) {
        this.parts.events.prepareFailed(wanted.version, asBacktalkError(thrown));
        throw thrown;
      }
    });
  }

  /** True when there was something to take away. */
  retire(version: string): Promise<boolean> {
    return this.turnstile.pass(async () => {
      const digest = this.held.get(version);
      if (digest === undefined && !this.strangers.includes(version)) return false;
      await this.unload(version);
      this.held.delete(version);
      this.strangers = this.strangers.filter((stranger) => stranger !== version);
      if (digest !== undefined) await this.parts.files.remove({ version, manifestDigest: digest });
      this.parts.onChange(this.versions);
      this.parts.events.retired(version);
      return true;
    });
  }

  /** Asks the engine which of these names it holds; returns those that it has lost, which are no longer held. */
  compare(isOurs: (name: string) => boolean, options: CallOptions): Promise<readonly string[]> {
    return this.turnstile.pass(async () => {
      const models = await this.parts.engine.models(options);
      const there = new Set(models.map(({ id }) => id).filter(isOurs));
      const lost = this.versions.filter((version) => !there.has(version));
      for (const version of lost) this.held.delete(version);
      this.strangers = [...there].filter((name) => !this.held.has(name));
      return lost;
    });
  }

  private async bring(wanted: WantedVersion, baseModel: string, signal?: AbortSignal): Promise<PrepareTimes> {
    const { files, engine, clock } = this.parts;
    const options = this.options(signal);
    const start = clock.now();
    const { folder } = await files.fetch(wanted, baseModel);
    const fetched = clock.now();
    await this.load(wanted.version, folder, options);
    const loaded = clock.now();
    try {
      await warmUp(engine, wanted.version, options);
    } catch (thrown) {
      // A version that does not answer is not left on the engine: it would hold a place that another needs.
      await this.unload(wanted.version).catch((error: unknown) =>
        this.parts.events.unloadFailed(wanted.version, asBacktalkError(error)),
      );
      throw thrown;
    }
    this.held.set(wanted.version, wanted.manifestDigest);
    this.strangers = this.strangers.filter((stranger) => stranger !== wanted.version);
    this.parts.onChange(this.versions);
    return {
      fetchSeconds: (fetched - start) / 1_000,
      loadSeconds: (loaded - fetched) / 1_000,
      warmUpSeconds: (clock.now() - loaded) / 1_000,
      already: false,
    };
  }

  /** Names are never used twice, so a name that is there holds these weights. */
  private async load(version: string, folder: string, options: CallOptions): Promise<void> {
    try {
      await this.parts.engine.loadAdapter(version, folder, options);
    } catch (error) {
      if (!isBacktalkError(error, 'adapter_already_loaded')) throw error;
    }
  }

  private async unload(version: string): Promise<void> {
    try {
      await this.parts.engine.unloadAdapter(version, this.options());
    } catch (error) {
      if (!isBacktalkError(error, 'adapter_not_loaded')) throw error;
    }
  }

  private options(signal?: AbortSignal): CallOptions {
    return { deadlineMs: this.parts.engineDeadlineMs, signal };
  }
}

async function warmUp(engine: EngineClient, version: string, options: CallOptions): Promise<void> {
  const { capture } = await engine.chat(warmUpRequest(version), options);
  const { reasons } = judgeCapture(capture);
  if (reasons.length > 0) throw loaderErrors.warmUpFailed({ version, why: reasons.join(', ') });
}
