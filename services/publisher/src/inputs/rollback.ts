// Puts the previous version back and burns the present one.
//
// In: an operator's wish. Out: one staged fact, whose sequence is the new fence, and gateways that route to the version
// before. It loads nothing where the loaders still hold that version.
import { isBacktalkError, type GrpcCallFacts } from '@backtalk/kit';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import type { PublisherControlServiceImplementation, RollbackResponse } from '@backtalk/proto/control';
import { stableOf, type PolicyState } from '../domain/policy-state.js';
import { rollbackTarget } from '../domain/rollback-target.js';
import { baseVersionOf } from '../domain/versions.js';
import { publisherErrors } from '../errors.js';
import type { PublisherEvents } from '../events.js';
import type { Announcer } from '../outputs/announcer.js';
import type { Loaders } from '../outputs/loaders.js';
import type { StagedChain } from '../outputs/staged-chain.js';

export interface RollbackParts {
  readonly policy: string;
  readonly chain: StagedChain;
  readonly loaders: Loaders;
  readonly announcer: Announcer;
  readonly events: PublisherEvents;
  readonly leading: () => boolean;
}

export function rollbackCalls(parts: RollbackParts): PublisherControlServiceImplementation<GrpcCallFacts> {
  return {
    async rollback({ policy, why }): Promise<RollbackResponse> {
      if (policy !== parts.policy) throw publisherErrors.policyUnknown({ policy });
      if (!parts.leading()) throw publisherErrors.notLeading();
      return rollBack(parts, why === '' ? 'rolled back' : why);
    },
  };
}

async function rollBack(parts: RollbackParts, why: string): Promise<RollbackResponse> {
  const start = performance.now();
  const from = stableOf(parts.chain.state);
  const to = await stepBackFrom(parts, from, why);
  await parts.announcer.announce();
  const seconds = (performance.now() - start) / 1_000;
  parts.events.rolledBack(from, to, seconds);
  return { from, to, seconds };
}

/** Out: the version that answers then. */
async function stepBackFrom(parts: RollbackParts, from: string, why: string): Promise<string> {
  for (;;) {
    const { state } = parts.chain;
    const target = rollbackTarget(state, from);
    if (target.kind === 'done') return target.to;
    if (target.kind === 'changed') throw publisherErrors.stableChanged({ from, stable: target.stable });
    if (target.kind === 'nothing') throw publisherErrors.nothingToRollBack({ stable: target.stable });
    try {
      await stepBack(parts, state, target.to, why);
      return target.to;
    } catch (error) {
      // The chain moved in between: what the wish means is found anew.
      if (!isBacktalkError(error, 'fact_superseded')) throw error;
    }
  }
}

async function stepBack({ chain, loaders, policy }: RollbackParts, state: PolicyState, to: string, why: string) {
  const lacking = loaders.ready().filter(({ engine }) => !engine.versions.includes(to));
  if (lacking.length > 0 && to !== baseVersionOf(policy))
    await loaders.prepare(lacking, { version: to, manifestDigest: state.digests.get(to) ?? '' });
  const version = stableOf(state);
  const stage = WeightsStaged_Stage.STAGE_BURNED;
  const manifestDigest = state.digests.get(version) ?? '';
  await chain.append(state, { version, stage, manifestDigest, previous: to, why });
}
