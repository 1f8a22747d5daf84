// The judge as a whole. It keeps nothing of its own: votes lie in a queue that all judges share, and a fact that is not
// settled when a judge dies is delivered to another.
import { EnginePool, ResolvedUrls } from '@backtalk/dialects';
import {
  consumeFacts,
  createService,
  FactPublisher,
  kvBucket,
  Refusals,
  watchEngineLeases,
  type BackOff,
  type ServiceContext,
  type ServiceOverrides,
  type ServiceWithPorts,
} from '@backtalk/kit';
import { Routes } from '@backtalk/proto/weights';
import type { JudgeConfig } from './config.js';
import { PlantedRecord } from './domain/planted.js';
import { createEvents, type JudgeEvents } from './events.js';
import { feedbackGiven } from './inputs/feedback-given.js';
import { judgementAsked } from './inputs/judgement-asked.js';
import type { JudgeParts, Voting } from './inputs/parts.js';
import { sessionClosed } from './inputs/session-closed.js';
import { turnContinued } from './inputs/turn-continued.js';
import { voteHandlers } from './inputs/votes.js';
import { FreeVoter } from './outputs/free-voter.js';
import { JudgedTurns } from './outputs/judged-turns.js';
import { Judgements } from './outputs/judgements.js';
import { readIsBare, readPlanted, readReader, readStandingSentences } from './outputs/labelled-set.js';
import { VersionTimes } from './outputs/version-times.js';
import { VoteCaster } from './outputs/vote-caster.js';
import { VoteQueue } from './outputs/vote-queue.js';
import type { Voter } from './outputs/voter.js';

export interface JudgeOverrides extends ServiceOverrides {
  /** In place of that of the configured backend. */
  readonly voter?: Voter;
  /** How fast failed facts and votes come again. */
  readonly backOff?: BackOff;
}

export type Judge = ServiceWithPorts;

type Context = ServiceContext<JudgeConfig>;

const stopWithinMs = 9_000;
/** Votes that are being cast may end; the others go to another judge. */
const votesStopWithinMs = 2_000;
const factsStopWithinMs = 1_000;

export function createJudge(config: JudgeConfig, overrides: JudgeOverrides = {}): Judge {
  return createService({
    name: 'judge',
    config,
    overrides,
    streams: ['TURNS'],
    stopWithinMs,
    start: (context) => start(context, overrides),
  });
}

async function start(context: Context, { voter, backOff }: JudgeOverrides): Promise<Readonly<Record<string, number>>> {
  const { config, broker, blobs, reader, clock, logger, metrics, lifecycle } = context;
  const events = createEvents(logger, metrics);
  const voting = await startVoting(context, voter ?? voterOf(config, events), backOff, events);
  const parts: JudgeParts = {
    config,
    clock,
    events,
    voting,
    // A model that reads is not helped by words that are counted.
    reader: config.backend === 'words' ? readReader() : undefined,
    standing: readStandingSentences(),
    turns: new JudgedTurns(reader, new Refusals(broker)),
    judgements: new Judgements(reader, new FactPublisher(broker, { blobs }), readIsBare()),
  };
  if (voting !== undefined) {
    await voting.queue.start(voteHandlers(parts, voting));
    lifecycle.add('votes', () => voting.queue.stop(votesStopWithinMs));
  }
  const consumer = consumeFacts({
    broker,
    blobs,
    clock,
    logger,
    metrics,
    ...(backOff === undefined ? {} : { backOff }),
    ackWaitMs: config.ackWaitMs,
    concurrency: config.turnsInFlight,
    onFatal: context.fail,
    service: 'judge',
    facts: ['turnContinued', 'feedbackGiven', 'sessionClosed', 'judgementAsked'],
    handlers: {
      turnContinued: (fact, delivery) => turnContinued(parts, fact, delivery),
      feedbackGiven: (fact) => feedbackGiven(parts, fact),
      sessionClosed: (fact, delivery) => sessionClosed(parts, fact, delivery),
      judgementAsked: (fact, delivery) => judgementAsked(parts, fact, delivery),
    },
  });
  await consumer.start();
  lifecycle.add('facts', () => consumer.stop(factsStopWithinMs));
  return {};
}

/** Nothing where evidence alone decides. */
async function startVoting(
  context: Context,
  voter: Voter | undefined,
  backOff: BackOff = { firstMs: 500, mostMs: 15_000 },
  events: JudgeEvents,
): Promise<Voting | undefined> {
  if (voter === undefined) return undefined;
  const { config, broker, clock, lifecycle, health } = context;
  const versionTimes = new VersionTimes(kvBucket(broker, 'routes', Routes));
  await versionTimes.start();
  lifecycle.add('routes', () => {
    versionTimes.stop();
  });
  const { engineUrls, engineDialect: dialect, engineKey: apiKey, model, voteWaitMs } = config;
  const urls = engineUrls.length > 0 ? new ResolvedUrls({ urls: engineUrls, clock, events }) : undefined;
  const leases = urls === undefined ? await watchEngineLeases(context) : undefined;
  const pool = new EnginePool({ urls, dialect, leases, apiKey, model, events, clock });
  await pool.start();
  lifecycle.add('engines', () => pool.stop());
  health.check('engines', () => pool.size > 0 || 'no engine of the judge pool is known');
  const caster = new VoteCaster(pool, voter, voteWaitMs, clock, events);
  const record = new PlantedRecord(config.plantedAccuracyMin);
  return { queue: new VoteQueue(context, backOff, events), caster, versionTimes, planted: readPlanted(), record };
}

function voterOf(config: JudgeConfig, events: JudgeEvents): Voter | undefined {
  if (config.backend !== 'free') return undefined;
  return new FreeVoter(config, { ...events, asked: (outcome, usage) => events.asked(outcome, usage, config) });
}
