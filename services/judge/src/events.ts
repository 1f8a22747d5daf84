// What happens in the judge, as the business sees it: one function for each event, which writes log and metric
// together. No text of a turn passes through here.
import { asBacktalkError, type Logger, type Metrics } from '@backtalk/kit';
import type { TurnJudged } from '@backtalk/proto/facts';
import { dropReasons, type DropReason } from './domain/hints/hindsight.js';
import type { CastVote, EvidenceVote, NullReason, Outcome } from './domain/verdict.js';
import type { PlantedFigures } from './domain/planted.js';
import { costOf, type Prices, type UsedTokens } from './domain/vote-budget.js';
import { leftOutReasons, type LeftOut } from './domain/vote-rule.js';

export const skipReasons = [
  'opted_out',
  'consent_unknown',
  'giver_opted_out',
  'said_enough',
  'side',
  'nothing_said',
  'judged_before',
] as const;
export type SkipReason = (typeof skipReasons)[number];
export type JudgedSource = 'votes' | 'evidence' | 'feedback' | 'at_least_one';
export type SessionEnd = 'effective' | 'heard' | 'kept' | 'nothing' | 'off' | 'outcome' | 'votes_disagree';

export type JudgeEvents = ReturnType<typeof createEvents>;

const secondsBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64];

export function createEvents(logger: Logger, metrics: Metrics) {
  const judged = metrics.counter('turns_judged_total', 'Judgements stored, by policy, what they rest on and verdict.', [
    'policy',
    'source',
    'verdict',
  ]);
  const hints = metrics.counter('hints_found_total', 'Judgements stored with hindsight.');
  const dropped = metrics.counter('hints_dropped_total', 'Hints that no judgement took, by reason.', ['reason']);
  for (const reason of dropReasons) dropped.inc({ reason }, 0);
  const skipped = metrics.counter(
    'turns_skipped_total',
    'Continued turns and feedback that are not judged, by reason.',
    ['reason'],
  );
  for (const reason of skipReasons) skipped.inc({ reason }, 0);
  const turnSeconds = metrics.histogram(
    'turn_seconds',
    'Time from the delivery of a turn to its judgement.',
    secondsBuckets,
  );
  const evidence = metrics.counter('evidence_found_total', 'Pieces of evidence, by name.', ['name']);
  const agreement = metrics.histogram('confidence_ratio', 'Share of agreeing votes.', [0.34, 0.5, 0.67, 0.84, 1]);
  const sessions = metrics.counter('sessions_closed_total', 'Closed sessions, by what they gave.', ['result']);
  const inFlight = metrics.gauge('turns_in_flight', 'Turns whose facts this process holds while votes are cast.');
  const engines = metrics.gauge('engines_known', 'Engines of the judge pool.');
  return {
    ...voteEvents(logger, metrics),
    ...plantedEvents(logger, metrics),
    ...spendingEvents(logger, metrics),
    turnJudged: (
      source: JudgedSource,
      { verdict, confidence }: Pick<Outcome, 'verdict' | 'confidence'>,
      { policy, hint }: Pick<TurnJudged, 'policy' | 'hint'>,
    ): void => {
      judged.inc({ policy, source, verdict: String(verdict) });
      agreement.observe(confidence);
      if (hint !== '') hints.inc();
      logger.debug('turn_judged', { policy, source, verdict, hasHint: hint !== '' });
    },
    hintsDropped: (reasons: readonly DropReason[]): void => {
      for (const reason of reasons) dropped.inc({ reason });
    },
    turnTook: (ms: number): void => {
      turnSeconds.observe(ms / 1000);
    },
    turnSkipped: (reason: SkipReason): void => {
      skipped.inc({ reason });
      logger.debug('turn_skipped', { reason });
    },
    evidenceFound: (found: readonly EvidenceVote[]): void => {
      for (const { name } of found) evidence.inc({ name });
    },
    turnsInFlight: (count: number): void => {
      inFlight.set(count);
    },
    enginesKnown: (count: number): void => {
      engines.set(count);
    },
    engineRefused: (reason: string): void => {
      logger.warn('engine_refused', { reason });
    },
    sessionClosed: (result: SessionEnd): void => {
      sessions.inc({ result });
      logger.debug('session_closed', { result });
    },
  };
}

function voteEvents(logger: Logger, metrics: Metrics) {
  const votes = metrics.counter('votes_cast_total', 'Votes, by what came of them.', ['result']);
  const voteSeconds = metrics.histogram('vote_seconds', 'Time of one try of a vote.', secondsBuckets);
  const handled = metrics.counter('jobs_handled_total', 'Tries of jobs, by what became of them.', ['queue', 'outcome']);
  const requeued = metrics.counter('votes_requeued_total', 'Votes whose jobs had vanished and were queued again.');
  const leftOut = metrics.counter('turns_without_votes_total', 'Turns that got no votes, by reason.', ['reason']);
  for (const reason of leftOutReasons) leftOut.inc({ reason }, 0);
  const waiting = metrics.gauge('votes_waiting', 'Votes in the queue of all judges that none casts yet.');
  const oldest = metrics.gauge(
    'votes_oldest_age_seconds',
    'Age of the vote in the queue of all judges that has waited longest, 0 when none waits.',
  );
  return {
    voteCast: (vote: CastVote, ms: number): void => {
      votes.inc({ result: vote.valid ? String(vote.verdict) : vote.reason });
      voteSeconds.observe(ms / 1000);
    },
    voteFailed: (error: unknown, attempt: number): void => {
      logger.warn('vote_failed', { attempt, error: asBacktalkError(error) });
    },
    /** After its last try: the vote is null. */
    voteGivenUp: (reason: NullReason): void => {
      votes.inc({ result: reason });
    },
    /** A try of a job, a vote's or a judgement's. */
    jobHandled: (queue: string, outcome: 'handled' | 'waited' | 'dead' | 'retried'): void => {
      handled.inc({ queue, outcome });
    },
    votesLeftOut: (reason: LeftOut): void => {
      leftOut.inc({ reason });
    },
    votesRequeued: (count: number): void => {
      requeued.inc(count);
      logger.warn('votes_requeued', { count });
    },
    votesWaiting: (count: number, oldestMs: number): void => {
      waiting.set(count);
      oldest.set(oldestMs / 1000);
    },
    queueNotMeasured: (error: unknown): void => {
      logger.warn('queue_not_measured', { error: asBacktalkError(error) });
    },
  };
}

/** What asking in words costs, and what engines refuse of it. */
function spendingEvents(logger: Logger, metrics: Metrics) {
  const requests = metrics.counter('requests_total', 'Requests of votes in words, by what came of them.', ['outcome']);
  const tokens = metrics.counter('tokens_total', 'Tokens of votes in words, as their engines count them.', ['kind']);
  for (const kind of ['prompt', 'cached', 'answer']) tokens.inc({ kind }, 0);
  const cost = metrics.counter('cost_total', 'What those tokens cost, at the prices of the settings.');
  const refused = metrics.gauge('fields_refused', '1 for a field of requests that an engine refused.', ['field']);
  return {
    asked: (outcome: string, usage: UsedTokens | undefined, prices: Prices): void => {
      requests.inc({ outcome });
      if (usage === undefined) return;
      const { promptTokens, cachedTokens = 0, completionTokens } = usage;
      tokens.inc({ kind: 'prompt' }, Math.max(0, promptTokens - cachedTokens));
      tokens.inc({ kind: 'cached' }, cachedTokens);
      tokens.inc({ kind: 'answer' }, completionTokens);
      cost.inc(costOf(usage, prices));
    },
    fieldsRefused: (fields: readonly string[], model: string): void => {
      for (const field of fields) refused.set({ field }, 1);
      logger.warn('fields_refused', { fields, model });
    },
    promptShortened: (model: string): void => {
      logger.warn('prompt_shortened', { model });
    },
  };
}

function plantedEvents(logger: Logger, metrics: Metrics) {
  const judged = metrics.counter('planted_judged_total', 'Planted turns that were judged.');
  const accuracy = metrics.gauge('planted_accuracy_ratio', 'Share of the newest planted turns that were judged right.');
  const flips = metrics.gauge(
    'planted_flips_ratio',
    'Share of the newest that speak to a judge and were judged wrong.',
  );
  const trusted = metrics.gauge(
    'votes_trusted',
    '0 while votes do not count, because too few planted turns are judged right.',
  );
  let wasTrusted = true;
  trusted.set(1);
  return {
    plantedJudged: (figures: PlantedFigures): void => {
      judged.inc();
      accuracy.set(figures.accuracy);
      flips.set(figures.flips);
      trusted.set(figures.isTrusted ? 1 : 0);
      if (figures.isTrusted !== wasTrusted)
        logger[figures.isTrusted ? 'info' : 'error'](figures.isTrusted ? 'votes_count_again' : 'votes_untrusted', {
          accuracy: figures.accuracy,
          flips: figures.flips,
        });
      wasTrusted = figures.isTrusted;
    },
    plantingFailed: (error: unknown): void => {
      logger.warn('planting_failed', { error: asBacktalkError(error) });
    },
  };
}
