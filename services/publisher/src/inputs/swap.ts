// Takes one candidate from trained to stable, or burns it. In: a version with its manifest. Out: staged facts, and a system
// that routes to it. It may be stopped at any step and run again: what is done already is done, and the chain says what
// was decided.
import {
  asBacktalkError,
  baseVersion,
  isBacktalkError,
  versionNumber,
  type BacktalkError,
  type Clock,
  type Trace,
} from '@backtalk/kit';
import { WeightsStaged_Stage, type WeightsTrained } from '@backtalk/proto/facts';
import { comparedAnswers, judgeBehaviour } from '../domain/behaviour.js';
import { judgeCases, type CaseLimits } from '../domain/cases.js';
import { judgeDrift, whyRollBack, type DriftLimits } from '../domain/drift-guards.js';
import { burnsVersion, judgeCandidate, type GateLimits, type GateVerdict } from '../domain/gate.js';
import { isDecided, previousOf, stableOf, type PolicyState } from '../domain/policy-state.js';
import { publisherErrors } from '../errors.js';
import type { PublisherEvents } from '../events.js';
import type { BehaviourProbes } from '../outputs/behaviour-probes.js';
import type { CaseScorer } from '../outputs/case-scores.js';
import type { Gateways } from '../outputs/gateways.js';
import type { LeasedEngine, Loaders, Prepared } from '../outputs/loaders.js';
import type { ProbeScorer } from '../outputs/probe-scores.js';
import type { Routing } from '../outputs/routing.js';
import type { StagedChain } from '../outputs/staged-chain.js';
import { rollBackFrom } from './rollback.js';

/** Names of the moments between two effects, where a process may die. */
export type SwapStep =
  'candidate_staged' | 'load_set_written' | 'prepared' | 'measured' | 'stable_staged' | 'routes_written' | 'committed';

/** What the release of one policy's versions works with. */
export interface ReleaseParts {
  readonly policy: string;
  readonly chain: StagedChain;
  readonly loaders: Loaders;
  readonly gateways: Gateways;
  readonly routing: Routing;
  readonly events: PublisherEvents;
  readonly clock: Clock;
  /** Throws `not_leading`: asked after each wait, before what cannot be taken back. */
  readonly assertLeading: () => void;
}

export interface GateParts {
  readonly scorer: ProbeScorer;
  readonly behaviour: BehaviourProbes;
  readonly cases: CaseScorer;
  readonly limitsFor: (dtype: string) => GateLimits;
  readonly driftLimits: DriftLimits;
  readonly caseLimits: CaseLimits;
}

interface Candidate extends Pick<WeightsTrained, 'version' | 'parent' | 'manifestDigest'> {
  /** In which its facts and calls go on. */
  readonly trace: Trace | undefined;
}

/** A report says what the step found of the version that it started from. */
type Trained = Omit<Candidate, 'trace'> & Partial<Pick<WeightsTrained, 'report'>>;

const { STAGE_CANDIDATE, STAGE_STABLE, STAGE_BURNED } = WeightsStaged_Stage;

/** Of the serving engines that are ready. Those left load it when they can; with fewer, all requests would go to a few. */
const servingShareMin = 0.5;

interface Refusal extends GateVerdict {
  /** Its parent is burned since a lesson is undone: of the version itself nothing is known. */
  readonly undone?: boolean;
}

export class Swap {
  /** What is being decided, and when it was first tried. */
  private deciding = { version: '', sinceMs: 0 };

  constructor(
    private readonly parts: ReleaseParts,
    private readonly gate: GateParts,
    private readonly reached: (step: SwapStep) => Promise<void>,
  ) {}

  /** Resolves when the version is stable or burned. */
  async decide(trained: Trained, parent?: Trace): Promise<void> {
    const { chain, events, clock } = this.parts;
    if (this.deciding.version !== trained.version) this.deciding = { version: trained.version, sinceMs: clock.now() };
    await this.rollBackServing(trained);
    while (!isDecided(chain.state, trained.version)) {
      try {
        const { state } = chain;
        const { version, manifestDigest } = trained;
        await events.swapping(version, parent, (trace) =>
          this.decideOn(state, { version, parent: trained.parent, manifestDigest, trace }),
        );
        return;
      } catch (error) {
        // A rollback came in between: the decision is made again on what is true now.
        if (!isBacktalkError(error, 'fact_superseded')) throw error;
      }
    }
  }

  /** Has what the next candidate is compared with answer before there is one. Without an engine that holds it, nothing. */
  async askAhead(): Promise<void> {
    const { behaviour } = this.gate;
    const [engine] = this.evaluators();
    if (engine === undefined || !behaviour.canAsk(engine)) return;
    const held = this.comparedWith(stableOf(this.parts.chain.state)).filter((version) =>
      engine.engine.versions.includes(version),
    );
    await behaviour.askAhead(
      engine,
      held.map((version) => this.nameOn(engine, version)),
    );
  }

  /** What was trained from a version that is rolled back here is burned by the decision that follows. */
  private async rollBackServing({ parent, report }: Trained): Promise<void> {
    const { state } = this.parts.chain;
    const why = whyRollBack(report?.measurements ?? {}, this.gate.driftLimits);
    if (why === '' || parent !== stableOf(state) || previousOf(state) === '') return;
    try {
      await rollBackFrom(this.parts, parent, why);
    } catch (error) {
      // It goes on serving, and the candidate may be better.
      if (!isBacktalkError(error, 'cannot_answer')) throw error;
      this.parts.events.workFailed(this.parts.policy, 'roll back', error);
    }
  }

  private async decideOn(before: PolicyState, candidate: Candidate): Promise<void> {
    const { routing, events, clock, policy } = this.parts;
    const { version, parent, trace } = candidate;
    let unworthy = version === parent ? 'own_parent: it names itself as its parent' : '';
    if (before.burned.has(parent)) unworthy = `parent_burned: it was trained from ${parent}, which is burned`;
    let state = before;
    if (before.candidate !== version) {
      state = await this.stage(before, candidate, STAGE_CANDIDATE, { why: 'trained', measurements: {} });
      events.candidateStaged(policy, version);
    }
    if (unworthy !== '')
      return this.burn(state, candidate, { why: unworthy, measurements: {}, undone: before.undone.has(parent) });
    await this.reached('candidate_staged');
    await routing.writeLoadSet();
    await this.reached('load_set_written');
    const verdict = await this.tryOut(candidate, stableOf(before));
    if (verdict.why !== '') return this.burn(state, candidate, verdict);
    await this.stage(state, candidate, STAGE_STABLE, { ...verdict, why: 'gate passed' });
    await this.reached('stable_staged');
    const { milliseconds: commitMilliseconds, gateways } = await routing.route(this.reached, trace);
    const prepareSeconds = verdict.measurements['prepare_seconds'] ?? 0;
    const swapSeconds = (clock.now() - this.deciding.sinceMs) / 1_000;
    events.swapped(policy, { version, prepareSeconds, commitMilliseconds, gateways, swapSeconds });
  }

  /** Has it loaded and measured everywhere. What stands in the way but says nothing about the weights is thrown. */
  private async tryOut(candidate: Candidate, stable: string): Promise<GateVerdict> {
    const { loaders, policy, events } = this.parts;
    let measured: GateVerdict = passed;
    try {
      const evaluators = this.evaluators();
      if (evaluators.length === 0) throw publisherErrors.noLoader({ policy });
      const evaluation = await this.prepare(evaluators, candidate);
      if (evaluation.ready.length === 0) throw awayFrom(candidate, evaluation.failed, 0, evaluators.length);
      await this.reached('prepared');
      const verdict = await this.measuredBy(evaluation.ready, candidate, stable);
      events.measured(policy, candidate.version, verdict.measurements);
      await this.reached('measured');
      if (verdict.why !== '') return verdict;
      measured = verdict;
      const asked = new Set(evaluators.map(({ instance }) => instance));
      const rest = loaders.ready().filter(({ instance }) => !asked.has(instance));
      const others = await this.prepare(rest, candidate);
      // Gateways go by leases: routed to before any says so, the version would be nowhere for them.
      const leased = await loaders.leased([...evaluation.ready, ...others.ready], candidate.version);
      const holding = leased.filter(isServing).length;
      const serving = loaders.ready().filter(isServing).length;
      const failed = [...evaluation.failed, ...others.failed];
      if (holding < Math.max(1, serving * servingShareMin)) throw awayFrom(candidate, failed, holding, serving);
      const prepare_seconds = evaluation.seconds + others.seconds;
      return { ...measured, measurements: { ...measured.measurements, prepare_seconds } };
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      if (burnsVersion(error)) return { ...measured, why: `${error.code}: ${error.message}` };
      throw thrown;
    }
  }

  /** Engines of the evaluation pool where there is one; otherwise the serving ones evaluate too. */
  private evaluators(): LeasedEngine[] {
    // Engines that give no logprobs of a prompt serve, and judge nothing.
    const scoring = this.parts.loaders
      .ready()
      .filter(({ engine: { capabilities } }) => capabilities.length === 0 || capabilities.includes('prompt_logprobs'));
    const evaluating = scoring.filter(({ engine }) => engine.pools.includes('evaluation'));
    return evaluating.length > 0 ? evaluating : scoring;
  }

  private comparedWith(stable: string): string[] {
    return [...new Set([stable, baseVersion(this.parts.policy)])];
  }

  /** By the first of them that can: what one engine fails at says nothing about the weights. */
  private async measuredBy(
    engines: readonly LeasedEngine[],
    candidate: Candidate,
    stable: string,
  ): Promise<GateVerdict> {
    const { events, assertLeading } = this.parts;
    let failure: unknown;
    for (const engine of engines) {
      try {
        return await this.measure(engine, candidate, stable);
      } catch (thrown) {
        const error = asBacktalkError(thrown);
        if (burnsVersion(error) || error.retry === 'stop') throw thrown;
        failure = thrown;
        events.measuringFailed(engine.instance, candidate.version, error);
        assertLeading();
      }
    }
    throw failure;
  }

  /** First what costs least: answers are asked for only where the numbers are right. */
  private async measure(engine: LeasedEngine, candidate: Candidate, stable: string): Promise<GateVerdict> {
    const { scorer, limitsFor } = this.gate;
    const { version, manifestDigest } = candidate;
    const { probes, dtype } = await scorer.manifest(version, manifestDigest);
    const limits = limitsFor(dtype);
    const numbers = judgeCandidate({ probes, ...(await scorer.score(engine, version, probes)) }, limits);
    if (numbers.why !== '') return numbers;
    const behaved = joined(numbers, await this.behaves(engine, version, stable, limits));
    return behaved.why === '' ? joined(behaved, await this.holdsLessons(engine, version, stable)) : behaved;
  }

  private async behaves(
    engine: LeasedEngine,
    version: string,
    stable: string,
    { behaviourLevel }: GateLimits,
  ): Promise<GateVerdict> {
    const { behaviour } = this.gate;
    if (!behaviour.canAsk(engine)) return passed;
    const startMs = this.parts.clock.now();
    const others = this.comparedWith(stable);
    const models = [version, ...others].map((name) => this.nameOn(engine, name));
    const answers = await behaviour.answersOf(engine, models);
    const [own, ...compared] = answers.map((answered, at) => ({
      version: [version, ...others][at] ?? '',
      ...answered,
    }));
    const behaviour_seconds = (this.parts.clock.now() - startMs) / 1_000;
    if (own === undefined) return passed;
    const asked = judgeBehaviour(own.faults, compared, behaviourLevel);
    const drifted = judgeDrift(own, compared, this.gate.driftLimits);
    const measurements = { ...asked.measurements, ...drifted.measurements, behaviour_seconds };
    const serving = compared.find((other) => other.version === stable);
    const texts = serving === undefined ? [] : comparedAnswers(serving.texts, own.texts);
    return { why: asked.why || drifted.why, measurements, compared: texts };
  }

  /** Turns that were corrected for the sake of lessons learned since. */
  private async holdsLessons(engine: LeasedEngine, version: string, stable: string): Promise<GateVerdict> {
    const { cases, caseLimits } = this.gate;
    const { policy, clock } = this.parts;
    const startMs = clock.now();
    const names = { base: engine.engine.baseModel, candidate: version, serving: this.nameOn(engine, stable) };
    const asked = await cases.ask(engine, names, versionNumber(policy, version) ?? 0);
    if (asked.length === 0) return passed;
    const seconds = { why: '', measurements: { cases_seconds: (clock.now() - startMs) / 1_000 } };
    return joined(seconds, judgeCases(asked, stable, caseLimits));
  }

  private nameOn({ engine: { baseModel } }: LeasedEngine, version: string): string {
    return version === baseVersion(this.parts.policy) ? baseModel : version;
  }

  /** A loader that could not prepare is left out: it catches up from the load set. A refusal of the weights is thrown. */
  private async prepare(loaders: readonly LeasedEngine[], candidate: Candidate): Promise<Prepared> {
    const prepared = await this.parts.loaders.prepare(loaders, candidate, candidate.trace);
    const refusal = prepared.failed.find(burnsVersion);
    if (refusal !== undefined) throw refusal;
    return prepared;
  }

  private async burn(state: PolicyState, candidate: Candidate, verdict: Refusal): Promise<void> {
    await this.stage(state, candidate, STAGE_BURNED, verdict);
    this.parts.events.burned(this.parts.policy, candidate.version, verdict.why);
    await this.parts.routing.writeLoadSet();
  }

  private stage(
    state: PolicyState,
    { version, manifestDigest, trace }: Candidate,
    stage: WeightsStaged_Stage,
    { why, measurements, compared = [], undone = false }: Refusal,
  ): Promise<PolicyState> {
    const fact = {
      version,
      stage,
      manifestDigest,
      previous: stableOf(state),
      measurements,
      why,
      compared: [...compared],
      undone,
    };
    return this.parts.chain.append(state, fact, trace);
  }
}

const passed: GateVerdict = { why: '', measurements: {} };

function joined(before: GateVerdict, after: GateVerdict): GateVerdict {
  const measurements = { ...before.measurements, ...after.measurements };
  return { why: before.why || after.why, measurements, compared: before.compared ?? after.compared ?? [] };
}

function awayFrom(
  { version }: Candidate,
  failed: readonly BacktalkError[],
  holding: number,
  asked: number,
): BacktalkError {
  const codes = failed.map(({ code }) => code);
  const why = codes.length > 0 ? codes : ['no lease names it yet'];
  return publisherErrors.loadersAway({ version, codes: why, holding, asked });
}

const isServing = ({ engine }: LeasedEngine): boolean => engine.pools.includes('serving');
