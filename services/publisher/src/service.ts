// The publisher's composition root: the chain of staged facts, loaders and gateways, and the work of the leading instance.
import {
  createService,
  FactPublisher,
  kvBucket,
  serviceLease,
  singleton,
  watchEngineLeases,
  watchLeases,
  type LeaseView,
  type ServiceContext,
  type ServiceOverrides,
  type ServiceWithPorts,
} from '@backtalk/kit';
import { serveGrpc } from '@backtalk/kit/grpc';
import { PublisherControlServiceDefinition } from '@backtalk/proto/control';
import { LoadSet, Routes } from '@backtalk/proto/weights';
import { parityMaxFor, type PublisherConfig } from './config.js';
import type { CaseLimits } from './domain/cases.js';
import { publisherErrors } from './errors.js';
import { createEvents } from './events.js';
import { controlCalls } from './inputs/control.js';
import { Leader } from './inputs/leadership.js';
import { Retirement } from './inputs/retirement.js';
import { Swap, type GateParts, type ReleaseParts, type SwapStep } from './inputs/swap.js';
import { TrainedFacts } from './inputs/trained-facts.js';
import { BehaviourProbes, type KnownAnswers } from './outputs/behaviour-probes.js';
import { CaseScorer } from './outputs/case-scores.js';
import { Gateways } from './outputs/gateways.js';
import { LessonCases } from './outputs/lesson-cases.js';
import { Loaders } from './outputs/loaders.js';
import { ProbeScorer } from './outputs/probe-scores.js';
import { Routing } from './outputs/routing.js';
import { StagedChain } from './outputs/staged-chain.js';

export interface PublisherOverrides extends ServiceOverrides {
  /** Called between two effects; a test may let it never return. */
  readonly reached?: (step: SwapStep) => void | Promise<void>;
}

export type Publisher = ServiceWithPorts<'grpc'>;

const stopWithinMs = 8_000;

export function createPublisher(config: PublisherConfig, overrides: PublisherOverrides = {}): Publisher {
  return createService({
    name: 'publisher',
    config,
    overrides,
    streams: ['WEIGHTS'],
    stopWithinMs,
    start: (context) => startParts(context, overrides.reached),
  });
}

async function startParts(
  context: ServiceContext<PublisherConfig>,
  reached: PublisherOverrides['reached'],
): Promise<{ grpc: number }> {
  const { config, clock, logger, metrics, lifecycle, broker, fail } = context;
  const events = createEvents(logger, metrics, config.policies);
  const loaderLeases = await watchEngineLeases(context);
  const gatewayLeases = await watchLeases(broker, 'gateway');
  const gateways = new Gateways(gatewayLeases, config.commitDeadlineMs, events, clock, context.wire);
  lifecycle.add('peers', () => {
    loaderLeases.stop();
    gatewayLeases.stop();
    gateways.close();
  });
  // Another may lead by now: what is left is that one's to do.
  const assertLeading = (): void => {
    if (!leadership.leading) throw publisherErrors.notLeading();
  };
  const step = async (name: SwapStep) => {
    await reached?.(name);
    assertLeading();
  };
  const ofBases: KnownAnswers = new Map();
  const releases = config.policies.map((policy) => {
    const parts = releaseParts(context, policy, { loaderLeases, gateways, events, assertLeading });
    const swap = new Swap(parts, gateParts(context, policy, ofBases), step);
    const trained = new TrainedFacts(context, { ...parts, swap });
    const retirement = new Retirement(parts, config.streamMaxMs);
    const leader = new Leader(parts, trained, retirement, swap, config.retireEveryMs, fail);
    return { parts, trained, leader };
  });
  let leading: Promise<unknown> = Promise.resolve();
  const leadership = singleton(broker, 'publisher', config.instance, {
    onGained: (signal) => {
      events.leadership(true);
      // It runs beside the renewal of the lease, and ends with the signal.
      leading = Promise.all(releases.map(({ leader }) => leader.lead(signal)));
    },
    onLost: async () => {
      events.leadership(false);
      await Promise.all(releases.map(({ trained }) => trained.stop()));
      await leading;
    },
  });
  const implementation = controlCalls(releases, () => leadership.leading);
  const services = [{ definition: PublisherControlServiceDefinition, implementation }];
  const grpc = await serveGrpc({ address: config.grpcAddress, services, logger, wire: context.wire });
  lifecycle.add('grpc', () => grpc.stop(stopWithinMs / 4));
  serviceLease(context, grpc.port);
  await leadership.start();
  lifecycle.add('leadership', () => leadership.stop());
  return { grpc: grpc.port };
}

/** What the releases of all policies share. */
interface Shared extends Pick<ReleaseParts, 'gateways' | 'events' | 'assertLeading'> {
  readonly loaderLeases: LeaseView;
}

function releaseParts(
  { config, clock, lifecycle, broker, reader, wire }: ServiceContext<PublisherConfig>,
  policy: string,
  { loaderLeases, gateways, events, assertLeading }: Shared,
): ReleaseParts {
  const loaders = new Loaders(loaderLeases, policy, config.prepareDeadlineMs, events, clock, wire);
  lifecycle.add(`loaders of ${policy}`, () => {
    loaders.close();
  });
  const chain = new StagedChain(reader, new FactPublisher(broker), policy);
  const routing = new Routing(
    chain,
    kvBucket(broker, 'load', LoadSet),
    kvBucket(broker, 'routes', Routes),
    gateways,
    events,
    assertLeading,
  );
  return { policy, chain, loaders, gateways, routing, events, clock, assertLeading };
}

function gateParts(context: ServiceContext<PublisherConfig>, policy: string, ofBases: KnownAnswers): GateParts {
  const { config, clock, lifecycle, blobs } = context;
  const { engineKey, driftMax, behaviourLevel, gateDeadlineMs: deadlineMs } = config;
  const { entropyFactor, lengthFactor, rollbackFactor } = config;
  const { behaviourProbes: probes, behaviourTokens: tokens } = config;
  const scorer = new ProbeScorer(blobs, engineKey, deadlineMs, clock);
  const behaviour = new BehaviourProbes(engineKey, { probes, tokens, deadlineMs }, clock, ofBases);
  const cases = caseScorer(context, policy);
  lifecycle.add('probes', () => {
    scorer.stop();
    behaviour.stop();
    cases.stop();
  });
  const limitsFor = (dtype: string) => ({ parityMax: parityMaxFor(config, dtype), driftMax, behaviourLevel });
  const driftLimits = { entropyFactor, lengthFactor, rollbackFactor };
  return { scorer, behaviour, cases, limitsFor, driftLimits, caseLimits: caseLimitsOf(config) };
}

function caseLimitsOf({ casesPerLesson: perLesson, casesMax: most, caseHeld: heldFrom }: PublisherConfig): CaseLimits {
  return { perLesson, most, heldFrom };
}

function caseScorer({ config, clock, reader }: ServiceContext<PublisherConfig>, policy: string): CaseScorer {
  const { engineKey, caseTokens: tokens, casesWithinMs: withinMs } = config;
  const cases = new LessonCases(reader, policy, caseLimitsOf(config));
  return new CaseScorer(engineKey, cases, { tokens, withinMs }, clock);
}
