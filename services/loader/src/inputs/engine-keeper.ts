// Keeps one engine as it should be: alive, probed, warm, holding the load set. In: a timer, and the load set at each change.
// Out: the engine's state. It notices a restart because the engine no longer lists anything of what it held; the engine is
// then not ready until everything is loaded again. What an engine has evicted is loaded again as well. One round at a time.
import { engineErrors, type Capabilities, type EngineClient } from '@backtalk/dialects';
import { asBacktalkError, baseVersion, versionParts, type Clock } from '@backtalk/kit';
import type { LoadedVersion } from '@backtalk/proto/weights';
import type { LoaderConfig } from '../config.js';
import { planReconcile, RetryTimes } from '../domain/reconcile.js';
import { misfitOf, rankMisfit, servesPolicies } from '../domain/requirements.js';
import type { LoaderEvents } from '../events.js';
import type { EngineState } from '../outputs/engine-state.js';
import type { LoadedAdapters } from '../outputs/loaded-adapters.js';
import type { RankTrial } from '../outputs/rank-trial.js';

export interface EngineKeeperParts {
  readonly engine: EngineClient;
  readonly adapters: LoadedAdapters;
  readonly rankTrial: RankTrial;
  readonly state: EngineState;
  readonly clock: Clock;
  readonly events: LoaderEvents;
  /** Ends the service. */
  readonly fail: (error: unknown) => void;
}

const healthDeadlineMs = 3_000;
/** Checks until an engine that was refused is looked at again. */
const misfitChecks = 6;
/** A busy engine may miss one check; one that is gone refuses the connection at once, and misses the next as well. */
const missesMax = 2;
/** Rounds after which an engine that cannot be looked at counts as looked at, as it is. */
const looksMax = 3;
/** Tries to unload one version, in about two minutes; a new load set begins them anew. */
const unloadsMax = 8;

export class EngineKeeper {
  private readonly stopping = new AbortController();
  private capabilities: Capabilities | undefined;
  /** Undefined until it has been looked for; empty when the engine fits. */
  private misfit: string | undefined;
  private lookedAtMs = 0;
  private misses = 0;
  /** Load sets by policy; while one is not known, nothing of that policy is loaded or unloaded. */
  private readonly wanted = new Map<string, readonly LoadedVersion[]>();
  private unwantedSince: ReadonlyMap<string, number> = new Map();
  private readonly retries = new RetryTimes();
  private wake: () => void = () => undefined;
  private running: Promise<void> | undefined;
  private hasLooked: () => void = () => undefined;
  /** Resolves when a first round came to its end, or some had not. */
  readonly looked = new Promise<void>((resolve) => {
    this.hasLooked = resolve;
  });

  constructor(
    private readonly config: LoaderConfig,
    private readonly parts: EngineKeeperParts,
  ) {}

  /** The base model's name; undefined until the engine has been probed. */
  get baseModel(): string | undefined {
    return this.capabilities?.baseModel;
  }

  /** While the load set is not known, every version may be in it. */
  mayRetire(version: string): boolean {
    return this.wanted.get(policyOf(version))?.every((wanted) => wanted.version !== version) === true;
  }

  start(): void {
    this.running ??= this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    this.wake();
    await this.running;
  }

  /** A policy's load set changed: the next round begins at once, and what failed is tried again. */
  follow(policy: string, wanted: readonly LoadedVersion[] | undefined): void {
    if (wanted === undefined) this.wanted.delete(policy);
    else this.wanted.set(policy, wanted);
    this.retries.forget();
    this.wake();
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    for (let rounds = 1; !signal.aborted; rounds += 1) {
      try {
        if (await this.round()) this.hasLooked();
      } catch (thrown) {
        if (!signal.aborted) {
          const error = asBacktalkError(thrown);
          this.parts.events.checkFailed(error);
          if (!this.parts.state.current.ready) this.parts.state.change({ reason: error.message });
          if (error.retry === 'stop') this.parts.fail(error);
        }
      }
      if (signal.aborted || rounds >= looksMax) this.hasLooked();
      if (signal.aborted) return;
      await new Promise<void>((resolve) => {
        const cancel = this.parts.clock.timer(this.config.engineCheckMs, resolve);
        this.wake = () => {
          cancel();
          resolve();
        };
      });
    }
  }

  /** Whether it found out how the engine is. */
  private async round(): Promise<boolean> {
    const { engine, adapters, state, events } = this.parts;
    const { policies } = this.config;
    if (!(await this.isUp())) return false;
    if (this.capabilities === undefined) {
      // Also warms the engine up: its first answer with logprobs may take half a minute.
      state.change({ reason: 'the engine is being probed' });
      const capabilities = await engine.probe(this.calling());
      const { baseModel, maxContext, names } = capabilities;
      state.change({ baseModel, maxContext, capabilities: [...names], reason: 'weights are being loaded' });
      events.engineProbed(state.current);
      this.capabilities = capabilities;
    }
    if (servesPolicies(this.config.enginePools)) {
      this.misfit = await this.lookAgain(this.capabilities);
      if (this.misfit !== '') {
        state.change({ ready: false, reason: this.misfit });
        return true;
      }
      if (this.config.engineDialect !== 'openai') {
        const lost = await adapters.compare(
          (name) => isVersionOf(policies, name),
          (version) => !this.mayRetire(version),
          { deadlineMs: healthDeadlineMs, signal: this.stopping.signal },
        );
        if (lost.length > 0) this.takeLoss(lost);
      }
      await this.reconcile(this.capabilities.baseModel);
    }
    state.change({ ready: true, reason: '' });
    return true;
  }

  /** An engine that restarted holds nothing. SGLang unloads what was used least where it has no place left, and serves on with the others. */
  private takeLoss(lost: readonly string[]): void {
    const { adapters, state, clock, events } = this.parts;
    const versions = [...this.config.policies.map(baseVersion), ...adapters.versions];
    if (adapters.versions.length + adapters.unchecked.length === 0) {
      events.versionsLost(lost);
      this.retries.forget();
      state.change({ ready: false, reason: 'weights are being loaded again', versions });
      return;
    }
    events.versionsEvicted(lost);
    // Later from time to time: where the places are too few for the load set, each one that comes back puts out another.
    for (const version of lost) this.retries.failed(version, clock.now(), 'later');
    state.change({ versions });
  }

  private async isUp(): Promise<boolean> {
    const { engine, state, events } = this.parts;
    const health = await engine.health({ deadlineMs: healthDeadlineMs, signal: this.stopping.signal });
    this.misses = health === 'up' ? 0 : this.misses + 1;
    if (health === 'up') return true;
    if (this.capabilities !== undefined && this.misses < missesMax) return false;
    if (state.current.ready) events.engineLost(health);
    this.capabilities = undefined;
    this.misfit = undefined;
    const reason = health === 'refusing' ? engineErrors.unauthorized({}).message : `the engine is ${health}`;
    state.change({ ready: false, reason });
    return false;
  }

  /**
   * Why the engine is refused; empty when it fits. One that fits stays so until it is lost; one that was refused may have
   * been ill, and is looked at now and then.
   */
  private async lookAgain(capabilities: Capabilities): Promise<string> {
    const { clock, rankTrial } = this.parts;
    const now = clock.now();
    const isDue = this.misfit !== '' && now - this.lookedAtMs >= misfitChecks * this.config.engineCheckMs;
    if (this.misfit !== undefined && !isDue) return this.misfit;
    let misfit = misfitOf(capabilities, this.config) ?? '';
    if (misfit === '' && this.config.engineDialect !== 'openai') {
      const isTaken = await rankTrial.isTaken(capabilities.baseModel, this.calling());
      if (!isTaken) misfit = rankMisfit(this.config.loraRank);
    }
    this.lookedAtMs = now;
    return misfit;
  }

  private async reconcile(baseModel: string): Promise<void> {
    const { adapters, clock, events, fail } = this.parts;
    const { unwantedSince } = this;
    const wanted = [...this.wanted.values()].flat();
    const isKnown = (version: string) => this.wanted.has(policyOf(version));
    const now = clock.now();
    const held = adapters.versions.filter(isKnown);
    const unchecked = adapters.unchecked.filter(isKnown);
    const { retireGraceMs: graceMs } = this.config;
    const plan = planReconcile({ wanted, held, unchecked, unwantedSince, now, graceMs });
    this.unwantedSince = plan.unwantedSince;
    for (const { version, manifestDigest } of plan.load) {
      if (!this.retries.isDue(version, now)) continue;
      try {
        const one = { policy: policyOf(version), version, manifestDigest };
        await adapters.prepare(one, baseModel, this.stopping.signal);
      } catch (thrown) {
        // Logged by the adapters; the others are loaded all the same.
        const error = asBacktalkError(thrown);
        this.retries.failed(version, clock.now(), error.retry);
        if (error.retry === 'stop') fail(error);
      }
    }
    for (const version of plan.unload) {
      if (!this.retries.isDue(version, now) || this.retries.countOf(version) >= unloadsMax) continue;
      try {
        await adapters.retire(version, () => !this.mayRetire(version));
      } catch (thrown) {
        // The others are unloaded all the same.
        const error = asBacktalkError(thrown);
        events.unloadFailed(version, error);
        this.retries.failed(version, clock.now(), error.retry);
        if (this.retries.countOf(version) === unloadsMax) events.unloadGivenUp(version, unloadsMax);
      }
    }
  }

  private calling() {
    return { deadlineMs: this.config.engineDeadlineMs, signal: this.stopping.signal };
  }
}

/** Empty for what is no version's name. */
const policyOf = (version: string) => versionParts(version)?.policy ?? '';

function isVersionOf(policies: readonly string[], name: string): boolean {
  const parts = versionParts(name);
  return parts !== undefined && parts.number > 0 && policies.includes(parts.policy);
}
