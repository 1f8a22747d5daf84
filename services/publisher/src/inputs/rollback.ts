// Puts the previous version back, or one before it, and burns the present one and all between. In: an operator's call, or a guard's word.
// Out: a staged fact for each burned version, the sequence of the last is the new fence, and gateways that route to the version that answers
// then. It loads nothing where the loaders still hold that version.
import { asBacktalkError, baseVersion, isBacktalkError, within } from '@backtalk/kit';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import type { RollbackResponse } from '@backtalk/proto/control';
import { rollbackTarget, stableOf } from '../domain/policy-state.js';
import { publisherErrors } from '../errors.js';
import type { ReleaseParts } from './swap.js';

interface WayBack {
  /** The version that is to answer again; empty: the one before. */
  readonly to: string;
  /** What else the burned versions were taught is learned again by their steps, without the lesson that is undone. */
  readonly undone: boolean;
  /** Of a call: one that is given up burns nothing more. */
  readonly signal?: AbortSignal;
}

/** Engines that come later catch up from the load set. */
const othersWithinMs = 5_000;

/** Of versions that are not burned, nothing is said. Then the fence, too, is no fact of before. */
export async function sayOnceMore(
  { chain, routing }: ReleaseParts,
  versions: readonly string[],
  why: string,
): Promise<void> {
  if (versions.length === 0) return;
  const { STAGE_BURNED, STAGE_STABLE } = WeightsStaged_Stage;
  const say = (version: string, stage: WeightsStaged_Stage) => {
    const { state } = chain;
    return chain.append(state, {
      version,
      stage,
      manifestDigest: state.digests.get(version) ?? '',
      previous: stableOf(state),
      why,
      undone: state.undone.has(version),
    });
  };
  for (const version of versions) if (chain.state.burned.has(version)) await say(version, STAGE_BURNED);
  await say(stableOf(chain.state), STAGE_STABLE);
  await routing.route();
}

/**
 * @param from the version that serves, as far as the caller knows
 * @param wanted where it leads to, and whether for a lesson's sake
 */
export async function rollBackFrom(
  parts: ReleaseParts,
  from: string,
  why: string,
  wanted: WayBack = { to: '', undone: false },
): Promise<RollbackResponse> {
  const { routing, events, clock } = parts;
  const startMs = clock.now();
  const { to, burned } = await stepBackFrom(parts, from, why, wanted);
  // It is decided, and who leads makes gateways follow.
  const untold = await routing.route().then(
    () => false,
    (error: unknown) => {
      events.workFailed(parts.policy, 'route', asBacktalkError(error));
      return true;
    },
  );
  const seconds = (clock.now() - startMs) / 1_000;
  if (burned.length > 0) events.rolledBack(from, to, seconds, why);
  return { from, to, seconds, burned, untold };
}

/** The version that answers then, and those that this call burned, newest first. */
async function stepBackFrom(parts: ReleaseParts, from: string, why: string, { to: wanted, undone, signal }: WayBack) {
  const { chain } = parts;
  for (const burned: string[] = []; ;) {
    const target = rollbackTarget(chain.state, from, wanted);
    if (target.kind === 'done') return { to: target.to, burned };
    if (target.kind === 'changed') throw publisherErrors.stableChanged({ from, stable: target.stable });
    if (target.kind === 'nothing') throw publisherErrors.nothingToRollBack({ stable: target.stable });
    if (target.kind === 'unknown') throw publisherErrors.neverAnswered({ version: wanted });
    const { to, burns } = target;
    try {
      await parts.loaders.keeping(to, async () => {
        await makeReady(parts, to);
        for (const version of burns) {
          // The one that leads by now may have had the version taken off again.
          parts.assertLeading();
          signal?.throwIfAborted();
          const { state } = chain;
          const manifestDigest = state.digests.get(version) ?? '';
          const stage = WeightsStaged_Stage.STAGE_BURNED;
          await chain.append(state, { version, stage, manifestDigest, previous: to, why, undone });
          burned.unshift(version);
        }
      });
      return { to, burned };
    } catch (error) {
      // The chain moved in between: what the call means is found anew.
      if (!isBacktalkError(error, 'fact_superseded')) throw error;
    }
  }
}

/** Nothing is burned where no engine that serves could answer with it: its files may be gone. Where one holds it, the others are hardly waited for. */
async function makeReady({ chain, loaders, policy, clock }: ReleaseParts, version: string): Promise<void> {
  if (version === baseVersion(policy)) return;
  const all = loaders.ready();
  const engines = all.filter(({ engine: { pools } }) => pools.includes('serving'));
  if (engines.length === 0 && all.length > 0) throw publisherErrors.cannotAnswer({ version, codes: ['none serves'] });
  const lacking = engines.filter(({ engine }) => !engine.versions.includes(version));
  if (lacking.length === 0) return;
  const manifestDigest = chain.state.digests.get(version) ?? '';
  const preparing = loaders.prepare(lacking, { version, manifestDigest });
  if (lacking.length < engines.length) {
    await within(clock, othersWithinMs, preparing);
    return;
  }
  const { ready, failed } = await preparing;
  if (ready.length === 0) throw publisherErrors.cannotAnswer({ version, codes: failed.map(({ code }) => code) });
}
