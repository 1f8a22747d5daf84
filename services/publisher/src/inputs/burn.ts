// Burns a version that nothing decides, a candidate or one whose fact cannot be read, by an operator's word. In: its name, and why. Out: a staged fact, on which training goes on; whatever
// tries to decide the version finds that it is decided. A version that has answered is rolled back instead.
import { asBacktalkError, isBacktalkError } from '@backtalk/kit';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { isDecided, stableOf } from '../domain/policy-state.js';
import { publisherErrors } from '../errors.js';
import type { ReleaseParts } from './swap.js';

/** @param isUnreadable whether a trained version that is no candidate may be this one */
export async function burnCandidate(
  parts: ReleaseParts,
  version: string,
  words: string,
  isUnreadable: () => Promise<boolean>,
): Promise<void> {
  const { chain, routing, events, policy } = parts;
  const stage = WeightsStaged_Stage.STAGE_BURNED;
  const why = `operator: ${words}`;
  for (;;) {
    const state = await chain.reload();
    if (state.burned.has(version)) return;
    if (state.candidate !== version && (isDecided(state, version) || !(await isUnreadable())))
      throw publisherErrors.notUndecided({ version });
    const manifestDigest = state.digests.get(version) ?? '';
    parts.assertLeading();
    try {
      await chain.append(state, { version, stage, manifestDigest, previous: stableOf(state), why });
      break;
    } catch (error) {
      // It was decided, or another version rolled back, in this moment.
      if (!isBacktalkError(error, 'fact_superseded')) throw error;
    }
  }
  events.burned(policy, version, why);
  // Who leads mends what is not written now.
  await routing.writeLoadSet().catch((error: unknown) => {
    events.workFailed(policy, 'load set', asBacktalkError(error));
  });
}
