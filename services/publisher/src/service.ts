// The publisher's composition root: the chain of staged facts, loaders and gateways, and the work of the leading instance.
import {
  createService,
  FactPublisher,
  kvBucket,
  serveGrpc,
  serviceLease,
  singleton,
  watchLeases,
  type ServiceContext,
  type ServiceOverrides,
  type ServiceWithPorts,
} from '@backtalk/kit';
import { PublisherControlServiceDefinition } from '@backtalk/proto/control';
import { LoadSet, Routes } from '@backtalk/proto/weights';
import { parityMaxFor, type PublisherConfig } from './config.js';
import { publisherErrors } from './errors.js';
import { createEvents } from './events.js';
import { Leader } from './inputs/leadership.js';
import { Retirement } from './inputs/retirement.js';
import { rollbackCalls } from './inputs/rollback.js';
import { Swap, type GateParts, type SwapStep } from './inputs/swap.js';
import { TrainedFacts } from './inputs/trained-facts.js';
import { BehaviourProbes } from './outputs/behaviour-probes.js';
import { Gateways } from './outputs/gateways.js';
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
  const { config, clock, logger, metrics, lifecycle, broker, reader, fail } = context;
  const { policy } = config;
  const events = createEvents(logger, metrics);
  const loaderLeases = await watchLeases(broker, 'loader');
  const gatewayLeases = await watchLeases(broker, 'gateway');
  const loaders = new Loaders(loaderLeases, policy, config.prepareDeadlineMs, events, clock, context.wire);
  const gateways = new Gateways(gatewayLeases, config.commitDeadlineMs, events, clock, context.wire);
  lifecycle.add('peers', () => {
    loaderLeases.stop();
    gatewayLeases.stop();
    loaders.close();
    gateways.close();
  });
  // Another may lead by now: what is left is that one's to do.
  const assertLeading = (): void => {
    if (!leadership.leading) throw publisherErrors.notLeading();
  };
  const chain = new StagedChain(reader, new FactPublisher(broker), policy);
  const routing = new Routing(
    chain,
    kvBucket(broker, 'load', LoadSet),
    kvBucket(broker, 'routes', Routes),
    gateways,
    events,
    assertLeading,
  );
  const gate = gateParts(context);
  const parts = { policy, chain, loaders, gateways, routing, events, clock, assertLeading };
  const swap = new Swap(parts, gate, async (step) => {
    await reached?.(step);
    assertLeading();
  });
  const trained = new TrainedFacts(context, { chain, swap });
  const leader = new Leader(parts, trained, new Retirement(parts, config.streamMaxMs), config.retireEveryMs, fail);
  let leading: Promise<void> = Promise.resolve();
  const leadership = singleton(broker, 'publisher', config.instance, {
    onGained: (signal) => {
      events.leadership(true);
      // It runs beside the renewal of the lease, and ends with the signal.
      leading = leader.lead(signal);
    },
    onLost: async () => {
      events.leadership(false);
      await trained.stop();
      await leading;
    },
  });
  const implementation = rollbackCalls(parts, () => leadership.leading);
  const services = [{ definition: PublisherControlServiceDefinition, implementation }];
  const grpc = await serveGrpc({ address: config.grpcAddress, services, logger, wire: context.wire });
  lifecycle.add('grpc', () => grpc.stop(stopWithinMs / 4));
  serviceLease(context, grpc.port);
  await leadership.start();
  lifecycle.add('leadership', () => leadership.stop());
  return { grpc: grpc.port };
}

function gateParts({ config, clock, lifecycle, blobs }: ServiceContext<PublisherConfig>): GateParts {
  const { engineKey, driftMax, behaviourLevel, gateDeadlineMs: deadlineMs } = config;
  const { behaviourProbes: probes, behaviourTokens: tokens } = config;
  const scorer = new ProbeScorer(blobs, engineKey, deadlineMs);
  const behaviour = new BehaviourProbes(engineKey, { probes, tokens, deadlineMs }, clock);
  lifecycle.add('probes', () => {
    scorer.stop();
    behaviour.stop();
  });
  const limitsFor = (dtype: string) => ({ parityMax: parityMaxFor(config, dtype), driftMax, behaviourLevel });
  return { scorer, behaviour, limitsFor };
}
