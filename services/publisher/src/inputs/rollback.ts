// Puts the previous version back, or one before it, and burns the present one and all between. In: an operator's call, or a guard's word.
// Out: a staged fact for each burned version, the last of whose sequences is the new fence, and gateways that route to the version that
// answers then. It loads nothing where the loaders still hold that version.
import { baseVersion, isBacktalkError, type GrpcCallFacts } from '@backtalk/kit';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import type { PublisherControlServiceImplementation, RollbackResponse } from '@backtalk/proto/control';
import { rollbackTarget, stableOf } from '../domain/policy-state.js';
import { publisherErrors } from '../errors.js';
import type { ReleaseParts } from './swap.js';

export function rollbackCalls(
  policies: readonly ReleaseParts[],
  isLeading: () => boolean,
): PublisherControlServiceImplementation<GrpcCallFacts> {
  return {
    async rollback({ policy, why, to }): Promise<RollbackResponse> {
      const parts = policies.find((one) => one.policy === policy);
      if (parts === undefined) throw publisherErrors.policyUnknown({ policy });
      if (!isLeading()) throw publisherErrors.notLeading();
      return rollBackFrom(parts, stableOf(parts.chain.state), why === '' ? 'rolled back' : why, to);
    },
  };
}

/**
 * @param from the version that serves, as far as the caller knows
 * @param wanted the version that is to answer again; empty: the one before
 */
export async function rollBackFrom(
  parts: ReleaseParts,
  from: string,
  why: string,
  wanted = '',
): Promise<RollbackResponse> {
  const { routing, events, clock } = parts;
  const startMs = clock.now();
  const { to, burned } = await stepBackFrom(parts, from, why, wanted);
  await routing.route();
  const seconds = (clock.now() - startMs) / 1_000;
  if (burned.length > 0) events.rolledBack(from, to, seconds, why);
  return { from, to, seconds, burned };
}

/** The version that answers then, and those that this call burned, newest first. */
async function stepBackFrom(parts: ReleaseParts, from: string, why: string, wanted: string) {
  const { chain, loaders, policy } = parts;
  for (const burned: string[] = []; ;) {
    const { state } = chain;
    const target = rollbackTarget(state, from, wanted);
    if (target.kind === 'done') return { to: target.to, burned };
    if (target.kind === 'changed') throw publisherErrors.stableChanged({ from, stable: target.stable });
    if (target.kind === 'nothing') throw publisherErrors.nothingToRollBack({ stable: target.stable });
    if (target.kind === 'unknown') throw publisherErrors.neverAnswered({ version: wanted });
    try {
      const { to, next } = target;
      const lacking = loaders.ready().filter(({ engine }) => !engine.versions.includes(to));
      if (lacking.length > 0 && to !== baseVersion(policy))
        await loaders.prepare(lacking, { version: to, manifestDigest: state.digests.get(to) ?? '' });
      const version = stableOf(state);
      const stage = WeightsStaged_Stage.STAGE_BURNED;
      const manifestDigest = state.digests.get(version) ?? '';
      await chain.append(state, { version, stage, manifestDigest, previous: next, why });
      burned.push(version);
      if (next === to) return { to, burned };
    } catch (error) {
      // The chain moved in between: what the call means is found anew.
      if (!isBacktalkError(error, 'fact_superseded')) throw error;
    }
  }
}
