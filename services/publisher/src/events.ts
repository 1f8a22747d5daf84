// What happens in a publisher: one function for each event writes its log line and its metrics together.
import { inSpan, type BacktalkError, type Logger, type Metrics, type Trace } from '@backtalk/kit';
import { answerFaults } from './domain/behaviour.js';

const secondBuckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const millisecondBuckets = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000];

export type PublisherEvents = ReturnType<typeof createEvents>;

export interface SwapFacts {
  readonly version: string;
  readonly prepareSeconds: number;
  readonly commitMilliseconds: number;
  readonly gateways: number;
  readonly swapSeconds: number;
}

/** What gateways follow of a policy. */
export interface RoutedFacts {
  readonly fence: number;
  /** Number of the version that answers. */
  readonly stable: number;
}

function instruments(metrics: Metrics) {
  return {
    versions: metrics.counter('versions_total', 'Versions staged, by policy and stage (candidate, stable, burned).', [
      'policy',
      'stage',
    ]),
    prepare: metrics.histogram('prepare_seconds', 'Time until the last loader had prepared a version.', secondBuckets),
    commit: metrics.histogram(
      'commit_milliseconds',
      'Time from the first Commit to the last gateway routed.',
      millisecondBuckets,
    ),
    swap: metrics.histogram(
      'swap_seconds',
      'Time from the first try to decide a candidate to the last gateway routed.',
      secondBuckets,
    ),
    parity: metrics.gauge('gate_parity', 'mean |Δ logprob| of the newest candidate.', ['policy']),
    drift: metrics.gauge(
      'gate_drift',
      'KL of the newest candidate to the base, shown the lessons in force or not, nats an answer.',
      ['policy'],
    ),
    faulty: metrics.gauge(
      'gate_faulty_answers',
      'Answers of the newest candidate to probe questions that fail, by fault (empty, looping, off_topic).',
      ['policy', 'fault'],
    ),
    behaviour: metrics.histogram(
      'gate_behaviour_seconds',
      'Time in which probe questions were answered and their answers scored.',
      secondBuckets,
    ),
    cases: metrics.gauge(
      'gate_cases',
      'Corrected turns that the newest candidate was asked again, by result: of a lesson that it holds, or of one that only what serves does (held, lost).',
      ['policy', 'result'],
    ),
    burned: metrics.counter('burned_total', 'Versions burned before they served, by reason.', ['reason']),
    leftOut: metrics.counter('loaders_left_out_total', 'Loaders that could not prepare, by error code.', ['code']),
    commitFailures: metrics.counter('commit_failures_total', 'Gateways that did not answer Commit, by error code.', [
      'code',
    ]),
    rollbacks: metrics.counter('rollbacks_total', 'Rollbacks, by who asked: an operator, or a guard.', ['by']),
    retired: metrics.counter('retired_total', 'Versions taken off a loader.'),
    leading: metrics.gauge('leading', '1 while this instance leads.'),
    fence: metrics.gauge('fence', 'Fence of the routes in force.', ['policy']),
    stable: metrics.gauge('stable_number', 'Number of the version that answers, 0 for the base.', ['policy']),
  };
}

function observeGate(
  numbers: ReturnType<typeof instruments>,
  policy: string,
  measured: Readonly<Record<string, number>>,
): void {
  numbers.parity.set({ policy }, measured['parity_mean_abs'] ?? 0);
  numbers.drift.set({ policy }, measured['drift_told_kl'] ?? 0);
  const [cases = 0, lost = 0] = [measured['cases'], measured['cases_lost']];
  numbers.cases.set({ policy, result: 'held' }, cases - lost);
  numbers.cases.set({ policy, result: 'lost' }, lost);
  const seconds = measured['behaviour_seconds'];
  if (seconds === undefined) return;
  numbers.behaviour.observe(seconds);
  for (const fault of answerFaults) numbers.faulty.set({ policy, fault }, measured[`behaviour_${fault}`] ?? 0);
}

/** From 0, or the first of its kind would be no increase. */
function startCounts({ versions, rollbacks }: ReturnType<typeof instruments>, policies: readonly string[]): void {
  for (const policy of policies)
    for (const stage of ['candidate', 'stable', 'burned']) versions.inc({ policy, stage }, 0);
  for (const by of ['operator', 'served_entropy']) rollbacks.inc({ by }, 0);
}

export function createEvents(logger: Logger, metrics: Metrics, policies: readonly string[]) {
  const numbers = instruments(metrics);
  startCounts(numbers, policies);
  return {
    ...peerEvents(logger, numbers),
    leadership(leading: boolean): void {
      numbers.leading.set(leading ? 1 : 0);
    },
    /** The way of one version through the publisher, as one span. */
    swapping: <T>(version: string, parent: Trace | undefined, work: (trace?: Trace) => Promise<T>): Promise<T> => {
      if (parent === undefined) return work();
      const attributes = { 'backtalk.version': version };
      return inSpan('swap', { kind: 'internal', parent, attributes }, work);
    },
    candidateStaged(policy: string, version: string): void {
      numbers.versions.inc({ policy, stage: 'candidate' });
      logger.info('candidate_staged', { version });
    },
    measured(policy: string, version: string, measurements: Readonly<Record<string, number>>): void {
      observeGate(numbers, policy, measurements);
      logger.info('candidate_measured', { version, measurements });
    },
    measuringFailed(loader: string, version: string, error: BacktalkError): void {
      logger.warn('candidate_measuring_failed', { loader, version, error });
    },
    burned(policy: string, version: string, why: string): void {
      numbers.versions.inc({ policy, stage: 'burned' });
      // The code before the colon: words behind it may be anything.
      numbers.burned.inc({ reason: why.split(':')[0] ?? '' });
      logger.error('version_burned', { version, why });
    },
    routed(policy: string, { fence, stable }: RoutedFacts, milliseconds: number): void {
      numbers.fence.set({ policy }, fence);
      numbers.stable.set({ policy }, stable);
      numbers.commit.observe(milliseconds);
    },
    swapped(policy: string, facts: SwapFacts): void {
      numbers.versions.inc({ policy, stage: 'stable' });
      numbers.prepare.observe(facts.prepareSeconds);
      numbers.swap.observe(facts.swapSeconds);
      logger.info('version_stable', facts);
    },
    rolledBack(from: string, to: string, seconds: number, why: string): void {
      numbers.rollbacks.inc({ by: why.startsWith('served_entropy: ') ? 'served_entropy' : 'operator' });
      logger.warn('version_rolled_back', { from, to, seconds, why });
    },
    converged(policy: string, { fence, stable }: RoutedFacts, changed: readonly string[]): void {
      numbers.fence.set({ policy }, fence);
      numbers.stable.set({ policy }, stable);
      logger.info('routing_converged', { policy, fence, changed });
    },
    /** Nothing decides its version: an operator burns it. */
    trainedUnreadable(policy: string, sequence: number, error: BacktalkError): void {
      logger.error('trained_unreadable', { policy, sequence, error });
    },
    workFailed(policy: string, work: string, error: BacktalkError): void {
      logger.warn('work_failed', { policy, work, error });
    },
  };
}

/** What loaders and gateways did, and did not. */
function peerEvents(logger: Logger, numbers: ReturnType<typeof instruments>) {
  return {
    loaderLeftOut(loader: string, version: string, error: BacktalkError): void {
      numbers.leftOut.inc({ code: error.code });
      logger.warn('loader_left_out', { loader, version, error });
    },
    commitFailed(error: BacktalkError): void {
      numbers.commitFailures.inc({ code: error.code });
      logger.warn('commit_failed', { error });
    },
    versionRetired(loader: string, version: string): void {
      numbers.retired.inc();
      logger.info('version_retired', { loader, version });
    },
    retireFailed(loader: string, version: string, error: BacktalkError): void {
      logger.warn('version_retire_failed', { loader, version, error });
    },
  };
}
