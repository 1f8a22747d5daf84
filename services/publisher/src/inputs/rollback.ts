// Puts the previous version back and burns the present one. In: an operator's call, or a guard's word. Out: one staged fact, whose sequence is
// the new fence, and gateways that route to the version before. It loads nothing where the loaders still hold that version.
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
    async rollback({ policy, why }): Promise<RollbackResponse> {
      const parts = policies.find((one) => one.policy === policy);
      if (parts === undefined) throw publisherErrors.policyUnknown({ policy });
      if (!isLeading()) throw publisherErrors.notLeading();
      return rollBackFrom(parts, stableOf(parts.chain.state), why === '' ? 'rolled back' : why);
    },
  };
}

/** @param from the version that serves, as far as the caller knows */
export async function rollBackFrom(parts: ReleaseParts, from: string, why: string): Promise<RollbackResponse> {
  const { routing, events, clock } = parts;
  const startMs = clock.now();
  const to = await stepBackFrom(parts, from, why);
  await routing.route();
  const seconds = (clock.now() - startMs) / 1_000;
  events.rolledBack(from, to, seconds, why);
  return { from, to, seconds };
}

/** Returns the version that answers then. */
async function stepBackFrom(parts: ReleaseParts, from: string, why: string): Promise<string> {
  const { chain, loaders, policy } = parts;
  for (;;) {
    const { state } = chain;
    const target = rollbackTarget(state, from);
    if (target.kind === 'done') return target.to;
    if (target.kind === 'changed') throw publisherErrors.stableChanged({ from, stable: target.stable });
    if (target.kind === 'nothing') throw publisherErrors.nothingToRollBack({ stable: target.stable });
    try {
      const { to } = target;
      const lacking = loaders.ready().filter(({ engine }) => !engine.versions.includes(to));
      if (lacking.length > 0 && to !== baseVersion(policy))
        await loaders.prepare(lacking, { version: to, manifestDigest: state.digests.get(to) ?? '' });
      const version = stableOf(state);
      const stage = WeightsStaged_Stage.STAGE_BURNED;
      const manifestDigest = state.digests.get(version) ?? '';
      await chain.append(state, { version, stage, manifestDigest, previous: to, why });
      return to;
    } catch (error) {
      // The chain moved in between: what the call means is found anew.
      if (!isBacktalkError(error, 'fact_superseded')) throw error;
    }
  }
}
