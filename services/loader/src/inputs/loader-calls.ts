// Answers the publisher's calls: Prepare, Retire, Watch. All three may be repeated. A publisher that has lost its
// leadership without knowing takes nothing off: what the load set names stays, and so does what an older fence asks for.
import { baseVersion, versionNumber } from '@backtalk/kit';
import { type GrpcCallFacts } from '@backtalk/kit/grpc';
import type { LoaderServiceImplementation, WatchResponse } from '@backtalk/proto/control';
import { loaderErrors } from '../errors.js';
import type { EngineKeeper } from './engine-keeper.js';
import type { EngineState } from '../outputs/engine-state.js';
import type { LoadedAdapters } from '../outputs/loaded-adapters.js';

export function loaderCalls(
  policies: readonly string[],
  adapters: LoadedAdapters,
  state: EngineState,
  keeper: Pick<EngineKeeper, 'baseModel' | 'mayRetire'>,
): LoaderServiceImplementation<GrpcCallFacts> {
  /** By policy. */
  const fencesSeen = new Map<string, number>();
  const checkPolicy = (asked: string) => {
    if (!policies.includes(asked)) throw loaderErrors.policyUnknown({ policy: asked });
  };
  return {
    async prepare({ policy, version, manifestDigest }, { signal }) {
      checkPolicy(policy);
      const { baseModel } = keeper;
      if (baseModel === undefined) throw loaderErrors.engineNotReady({ reason: state.current.reason });
      // The base is on every engine.
      if (version === baseVersion(policy)) return { already: true };
      return adapters.prepare({ policy, version, manifestDigest }, baseModel, signal);
    },
    async retire({ policy, version, fence }) {
      checkPolicy(policy);
      // Under another policy's name its fence would say nothing.
      if (versionNumber(policy, version) === undefined) throw loaderErrors.versionInvalid({ version, policy });
      const seen = fencesSeen.get(policy) ?? 0;
      if (fence !== 0 && fence < seen) throw loaderErrors.fencePassed({ fence, seen });
      fencesSeen.set(policy, Math.max(seen, fence));
      const isWanted = () => !keeper.mayRetire(version);
      if (isWanted()) throw loaderErrors.versionWanted({ version });
      return { already: !(await adapters.retire(version, isWanted)) };
    },
    async *watch(_request, { signal }): AsyncGenerator<WatchResponse> {
      for await (const engine of state.watch(signal)) yield { engine };
    },
  };
}
