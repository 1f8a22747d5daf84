// Keeps one engine as it should be: alive, probed, warm, holding the load set.
//
// In: a timer, and kicks when the load set changes. Out: the board. It notices a restart because the engine no longer
// lists what it held; the engine is then not ready until everything is loaded again. One round at a time.
import type { Capabilities, EngineClient } from '@backtalk/dialects';
import { asBacktalkError, type Clock } from '@backtalk/kit';
import type { LoadedVersion } from '@backtalk/proto/weights';
import { misfitOf, rankMisfit, type PolicyNeeds } from '../domain/requirements.js';
import { planReconcile } from '../domain/reconcile.js';
import { RetryTimes } from '../domain/retry-times.js';
import { baseVersionOf, isVersionOf } from '../domain/versions.js';
import type { LoaderEvents } from '../events.js';
import type { EngineBoard } from '../outputs/engine-board.js';
import type { HeldAdapters } from '../outputs/held-adapters.js';
import type { RankTrial } from '../outputs/rank-trial.js';

export interface EngineKeeperParts {
  readonly policy: string;
  readonly needs: PolicyNeeds;
  /** False for an engine that only judges: it holds no versions. */
  readonly servesPolicy: boolean;
  readonly rankTrial: RankTrial;
  readonly engine: EngineClient;
  readonly adapters: HeldAdapters;
  readonly board: EngineBoard;
  readonly clock: Clock;
  readonly events: LoaderEvents;
  /** Undefined while the load set is not known: nothing is loaded or unloaded then. */
  readonly wanted: () => readonly LoadedVersion[] | undefined;
  readonly checkMs: number;
  readonly engineDeadlineMs: number;
  readonly retireGraceMs: number;
}

const healthDeadlineMs = 3_000;
/** Checks until an engine that was refused is looked at again. */
const misfitChecks = 6;
/** A busy engine may miss one question; one that is gone refuses the connection at once, and misses the next as well. */
const missesMax = 2;

export class EngineKeeper {
  private readonly stopping = new AbortController();
  private capabilities: Capabilities | undefined;
  /** Undefined until it has been looked for; empty when the engine fits. */
  private misfit: string | undefined;
  private lookedAtMs = 0;
  private misses = 0;
  private unwantedSince: ReadonlyMap<string, number> = new Map();
  private readonly retries = new RetryTimes();
  private wake: () => void = () => undefined;
  private running: Promise<void> | undefined;
  private hasLooked: () => void = () => undefined;
  /** Resolves when the first round is over, however it ended. */
  readonly looked = new Promise<void>((resolve) => {
    this.hasLooked = resolve;
  });

  constructor(private readonly parts: EngineKeeperParts) {}

  /** The base model's name; undefined until the engine has been probed. */
  get baseModel(): string | undefined {
    return this.capabilities?.baseModel;
  }

  start(): void {
    this.running ??= this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    this.wake();
    await this.running;
  }

  /** The load set changed: don't wait for the timer, and try again at once what failed. */
  kick(): void {
    this.retries.forget();
    this.wake();
  }

  private async run(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      try {
        await this.round();
      } catch (error) {
        if (!this.stopping.signal.aborted) this.parts.events.checkFailed(asBacktalkError(error));
      }
      this.hasLooked();
      await this.pause();
    }
  }

  private async round(): Promise<void> {
    if (!(await this.isUp())) return;
    this.capabilities ??= await this.probe();
    if (this.parts.servesPolicy) {
      this.misfit = await this.lookAgain(this.capabilities);
      if (this.misfit !== '') {
        this.parts.board.change({ ready: false, reason: this.misfit });
        return;
      }
      await this.compare();
      await this.reconcile(this.capabilities.baseModel);
    }
    this.parts.board.change({ ready: true, reason: '' });
  }

  private async isUp(): Promise<boolean> {
    const health = await this.parts.engine.health({ deadlineMs: healthDeadlineMs, signal: this.stopping.signal });
    this.misses = health === 'up' ? 0 : this.misses + 1;
    if (health === 'up') return true;
    if (this.capabilities !== undefined && this.misses < missesMax) return false;
    if (this.parts.board.current.ready) this.parts.events.engineLost(health);
    this.capabilities = undefined;
    this.misfit = undefined;
    this.parts.board.change({ ready: false, reason: `the engine is ${health}` });
    return false;
  }

  /** Also warms the engine up: its first answer with logprobs may take half a minute. */
  private async probe(): Promise<Capabilities> {
    const { board, events, engine, engineDeadlineMs: deadlineMs } = this.parts;
    board.change({ reason: 'the engine is being probed' });
    const capabilities = await engine.probe({ deadlineMs, signal: this.stopping.signal });
    const { baseModel, maxContext, names } = capabilities;
    board.change({ baseModel, maxContext, capabilities: [...names], reason: 'weights are being loaded' });
    events.engineProbed(board.current);
    return capabilities;
  }

  /** One that fits stays so until it is lost; one that was refused may have been ill, and is looked at now and then. */
  private async lookAgain(capabilities: Capabilities): Promise<string> {
    const now = this.parts.clock.now();
    const isDue = this.misfit !== '' && now - this.lookedAtMs >= misfitChecks * this.parts.checkMs;
    if (this.misfit !== undefined && !isDue) return this.misfit;
    const misfit = await this.look(capabilities);
    this.lookedAtMs = now;
    return misfit;
  }

  /** Why the engine is refused; empty when it fits. */
  private async look(capabilities: Capabilities): Promise<string> {
    const { needs, rankTrial, engineDeadlineMs: deadlineMs } = this.parts;
    const misfit = misfitOf(capabilities, needs);
    if (misfit !== undefined) return misfit;
    if (needs.dialect === 'openai') return '';
    const isTaken = await rankTrial.isTaken(capabilities.baseModel, { deadlineMs, signal: this.stopping.signal });
    return isTaken ? '' : rankMisfit(rankTrial.rank);
  }

  private async compare(): Promise<void> {
    const { adapters, board, events, policy, needs } = this.parts;
    if (needs.dialect === 'openai') return;
    const base = baseVersionOf(policy);
    const isOurs = (name: string) => isVersionOf(policy, name) && name !== base;
    const lost = await adapters.compare(isOurs, { deadlineMs: healthDeadlineMs, signal: this.stopping.signal });
    if (lost.length === 0) return;
    events.versionsLost(lost);
    const reason = 'weights are being loaded again';
    board.change({ ready: false, reason, versions: [base, ...adapters.versions] });
  }

  private async reconcile(baseModel: string): Promise<void> {
    const { adapters, clock, policy, retireGraceMs: graceMs } = this.parts;
    const wanted = this.parts.wanted();
    if (wanted === undefined) return;
    const now = clock.now();
    const plan = planReconcile({
      wanted,
      held: adapters.versions,
      unchecked: adapters.unchecked,
      unwantedSince: this.unwantedSince,
      now,
      graceMs,
    });
    this.unwantedSince = plan.unwantedSince;
    for (const { version, manifestDigest } of plan.load) {
      if (!this.retries.isDue(version, now)) continue;
      await adapters.prepare({ policy, version, manifestDigest }, baseModel, this.stopping.signal).then(
        () => this.retries.succeeded(version),
        // Said by the adapters already; the others are loaded all the same.
        (error: unknown) => this.retries.failed(version, clock.now(), asBacktalkError(error).retry),
      );
    }
    for (const version of plan.unload) await adapters.retire(version);
  }

  private pause(): Promise<void> {
    if (this.stopping.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.parts.clock.timer(this.parts.checkMs, resolve);
      this.wake = () => {
        cancel();
        resolve();
      };
    });
  }
}
