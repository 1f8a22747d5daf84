// Takes one candidate from trained to stable, or burns it.
//
// In: a version with its manifest. Out: staged facts, and a system that routes to it. It may be stopped at any step and
// run again: what is done already is done, and the chain says what was decided.
import { asBacktalkError, isBacktalkError, type Trace } from '@backtalk/kit';
import { WeightsStaged_Stage, type WeightsTrained } from '@backtalk/proto/facts';
import type { Probe, WeightsManifest } from '@backtalk/proto/weights';
import { burnsVersion } from '../domain/failures.js';
import { judgeCandidate, type GateVerdict } from '../domain/gate.js';
import { isDecided, stableOf, type PolicyState } from '../domain/policy-state.js';
import { publisherErrors } from '../errors.js';
import type { PublisherEvents } from '../events.js';
import type { Announcer } from '../outputs/announcer.js';
import type { LeasedEngine, Loaders, Prepared } from '../outputs/loaders.js';
import type { ProbeScorer, ProbeScores } from '../outputs/probe-scores.js';
import type { StagedChain } from '../outputs/staged-chain.js';

/** Names of the moments between two effects, where a process may die. */
export type SwapStep =
  'candidate_staged' | 'load_set_written' | 'prepared' | 'measured' | 'stable_staged' | 'routes_written' | 'committed';

export interface SwapParts {
  readonly policy: string;
  readonly chain: StagedChain;
  readonly loaders: Loaders;
  readonly announcer: Announcer;
  readonly scorer: ProbeScorer;
  readonly manifestOf: (version: string, digest: string) => Promise<WeightsManifest>;
  readonly events: PublisherEvents;
  readonly parityMaxFor: (dtype: string) => number;
  readonly driftMax: number;
  readonly reached: (step: SwapStep) => void | Promise<void>;
}

type Trained = Pick<WeightsTrained, 'version' | 'parent' | 'manifestDigest'>;
/** With the trace in which its facts and calls go on. */
type Followed = Trained & { readonly trace?: Trace };

/** Why a version is burned before anything is loaded; undefined when it may be tried. */
function unworthy(state: PolicyState, { version, parent }: Trained): string | undefined {
  if (state.burned.has(parent)) return `parent_burned: it was trained from ${parent}, which is burned`;
  if (version === parent) return 'own_parent: it names itself as its parent';
  return undefined;
}

function refusalIn({ failed }: Prepared): string | undefined {
  const refusal = failed.find(({ error }) => burnsVersion(error));
  return refusal && `${refusal.error.code}: ${refusal.error.message}`;
}

/** Engines that give no logprobs of a prompt serve, and judge nothing. */
function canScore(capabilities: readonly string[]): boolean {
  return capabilities.length === 0 || capabilities.includes('prompt_logprobs');
}

export class Swap {
  constructor(private readonly parts: SwapParts) {}

  /** Resolves when the version is stable or burned. */
  async decide(trained: Trained, parent?: Trace): Promise<void> {
    for (;;) {
      const { state } = this.parts.chain;
      if (isDecided(state, trained.version)) return;
      try {
        await this.parts.events.swapping(trained.version, parent, (trace) =>
          this.decideOn(state, trace === undefined ? trained : { ...trained, trace }),
        );
        return;
      } catch (error) {
        // A rollback came in between: the decision is made again on what is true now.
        if (!isBacktalkError(error, 'fact_superseded')) throw error;
      }
    }
  }

  private async decideOn(before: PolicyState, trained: Followed): Promise<void> {
    const { announcer, reached } = this.parts;
    const start = performance.now();
    const refusal = unworthy(before, trained);
    const state = await this.stageCandidate(before, trained);
    if (refusal !== undefined) return this.burn(state, trained, { why: refusal, measurements: {} });
    await reached('candidate_staged');
    await announcer.writeLoad();
    await reached('load_set_written');
    const evaluators = this.evaluators();
    const evaluation = await this.prepare(evaluators, trained);
    if (typeof evaluation === 'string') return this.burn(state, trained, { why: evaluation, measurements: {} });
    await reached('prepared');
    const verdict = await this.measure(evaluation, trained);
    await reached('measured');
    if (verdict.why !== '') return this.burn(state, trained, verdict);
    const others = await this.prepareOthers(evaluators, evaluation, trained);
    if (typeof others === 'string') return this.burn(state, trained, { ...verdict, why: others });
    const prepareSeconds = evaluation.seconds + others.seconds;
    await this.makeStable(state, trained, { ...verdict.measurements, prepare_seconds: prepareSeconds });
    const { milliseconds, gateways } = await announcer.announce(reached, trained.trace);
    this.parts.events.swapped({
      version: trained.version,
      prepareSeconds,
      commitMilliseconds: milliseconds,
      gateways,
      swapSeconds: (performance.now() - start) / 1_000,
    });
  }

  private async stageCandidate(state: PolicyState, { version, manifestDigest, trace }: Followed): Promise<PolicyState> {
    if (state.candidate === version) return state;
    const stage = WeightsStaged_Stage.STAGE_CANDIDATE;
    const previous = stableOf(state);
    const candidate = { version, stage, manifestDigest, previous, why: 'trained' };
    const next = await this.parts.chain.append(state, candidate, trace);
    this.parts.events.candidateStaged(version);
    return next;
  }

  /** Engines of the evaluation pool where there is one; otherwise the serving ones evaluate too. */
  private evaluators(): LeasedEngine[] {
    const ready = this.parts.loaders.ready().filter(({ engine }) => canScore(engine.capabilities));
    const evaluators = ready.filter(({ engine }) => engine.pools.includes('evaluation'));
    return evaluators.length > 0 ? evaluators : ready;
  }

  /** Who holds it now; or why it is burned. At least one loader must hold it. */
  private async prepare(loaders: readonly LeasedEngine[], trained: Followed): Promise<Prepared | string> {
    if (loaders.length === 0) throw publisherErrors.noLoader({ policy: this.parts.policy });
    const prepared = await this.parts.loaders.prepare(loaders, trained, trained.trace);
    return refusalIn(prepared) ?? this.notAllAway(prepared, prepared.ready.length > 0, trained);
  }

  /** The rest of the loaders. One that could not prepare is left out: it catches up from the load set. */
  private async prepareOthers(
    asked: readonly LeasedEngine[],
    evaluation: Prepared,
    trained: Followed,
  ): Promise<Prepared | string> {
    const { loaders } = this.parts;
    const instances = new Set(asked.map(({ instance }) => instance));
    const others = await loaders.prepare(
      loaders.ready().filter(({ instance }) => !instances.has(instance)),
      trained,
      trained.trace,
    );
    const refusal = refusalIn(others);
    if (refusal !== undefined) return refusal;
    const all = [...evaluation.ready, ...others.ready];
    // Gateways go by leases: routed to before any says so, the version would be nowhere for them.
    const known = await loaders.leased(all, trained.version);
    return this.notAllAway(
      others,
      known.some(({ engine }) => engine.pools.includes('serving')),
      trained,
    );
  }

  private notAllAway(prepared: Prepared, isThere: boolean, { version }: Trained): Prepared {
    if (isThere) return prepared;
    const codes = prepared.failed.map(({ error }) => error.code);
    throw publisherErrors.loadersAway({ version, codes: codes.length > 0 ? codes : ['no lease names it yet'] });
  }

  private async measure({ ready: [loader] }: Prepared, { version, manifestDigest }: Trained): Promise<GateVerdict> {
    const { driftMax, parityMaxFor, events, policy } = this.parts;
    if (loader === undefined) throw publisherErrors.noLoader({ policy });
    const manifest = await this.manifest(version, manifestDigest);
    if (typeof manifest === 'string') return { why: manifest, measurements: {} };
    const { probes, dtype } = manifest;
    const scores = await this.scores(loader, version, probes);
    if (typeof scores === 'string') return { why: scores, measurements: {} };
    const verdict = judgeCandidate({ probes, ...scores }, { parityMax: parityMaxFor(dtype), driftMax });
    events.measured(version, verdict.measurements);
    return verdict;
  }

  /** Or why it is burned. An engine that broke off, or forgot the version since it was prepared, is asked again later. */
  private async scores(loader: LeasedEngine, version: string, probes: readonly Probe[]): Promise<ProbeScores | string> {
    try {
      return await this.parts.scorer.score(loader, version, probes);
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      if (burnsVersion(error)) return `${error.code}: ${error.message}`;
      throw thrown;
    }
  }

  private async manifest(version: string, digest: string): Promise<WeightsManifest | string> {
    try {
      return await this.parts.manifestOf(version, digest);
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      if (error.retry === 'never') return `${error.code}: ${error.message}`;
      throw error;
    }
  }

  private async makeStable(state: PolicyState, trained: Followed, measurements: Record<string, number>): Promise<void> {
    const { version, manifestDigest, trace } = trained;
    const stage = WeightsStaged_Stage.STAGE_STABLE;
    const previous = stableOf(state);
    const stable = { version, stage, manifestDigest, previous, measurements, why: 'gate passed' };
    await this.parts.chain.append(state, stable, trace);
    await this.parts.reached('stable_staged');
  }

  private async burn(state: PolicyState, trained: Followed, { why, measurements }: GateVerdict): Promise<void> {
    const { version, manifestDigest, trace } = trained;
    const stage = WeightsStaged_Stage.STAGE_BURNED;
    const previous = stableOf(state);
    await this.parts.chain.append(state, { version, stage, manifestDigest, previous, measurements, why }, trace);
    this.parts.events.burned(version, why);
    await this.parts.announcer.writeLoad();
  }
}
