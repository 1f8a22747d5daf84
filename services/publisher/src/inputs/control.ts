// What an operator's commands ask of the publisher that leads: each call is about one policy, and is decided on what its chain says.
import { type GrpcCallFacts } from '@backtalk/kit/grpc';
import type { BurnResponse, PublisherControlServiceImplementation, RollbackResponse } from '@backtalk/proto/control';
import { stableOf } from '../domain/policy-state.js';
import { publisherErrors } from '../errors.js';
import { burnCandidate } from './burn.js';
import { rollBackFrom, sayOnceMore } from './rollback.js';
import type { ReleaseParts } from './swap.js';
import type { TrainedFacts } from './trained-facts.js';

interface Release {
  readonly parts: ReleaseParts;
  readonly leader: { readonly hasBegun: boolean };
  readonly trained: Pick<TrainedFacts, 'isUnreadable'>;
}

export function controlCalls(
  releases: readonly Release[],
  isLeading: () => boolean,
): PublisherControlServiceImplementation<GrpcCallFacts> {
  const releaseOf = (policy: string): Release => {
    const release = releases.find(({ parts }) => parts.policy === policy);
    if (release === undefined) throw publisherErrors.policyUnknown({ policy });
    if (!isLeading()) throw publisherErrors.notLeading();
    return release;
  };
  return {
    async rollback({ policy, why, to, forgotten, undone, from }, { signal }): Promise<RollbackResponse> {
      const { parts, leader } = releaseOf(policy);
      const words = why === '' ? 'rolled back' : why;
      // Another may have decided since this one last looked: what is named would seem to answer, or never to have. Otherwise it is
      // not read anew, so that two operators who ask at once go one step back.
      if (to !== '' || from !== '' || !leader.hasBegun) await parts.chain.reload();
      const known = from === '' ? stableOf(parts.chain.state) : from;
      const done = await rollBackFrom(parts, known, words, { to, undone, signal });
      await sayOnceMore(parts, forgotten, words);
      return done;
    },
    async burn({ policy, version, why }): Promise<BurnResponse> {
      const { parts, trained } = releaseOf(policy);
      await burnCandidate(parts, version, why === '' ? 'burned' : why, () => trained.isUnreadable(version));
      return {};
    },
  };
}
