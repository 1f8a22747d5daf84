// Answers the publisher's calls: Prepare, Retire, Watch. All three may be repeated.
import { baseVersion, type GrpcCallFacts } from '@backtalk/kit';
import type { LoaderServiceImplementation, WatchResponse } from '@backtalk/proto/control';
import { loaderErrors } from '../errors.js';
import type { EngineState } from '../outputs/engine-state.js';
import type { LoadedAdapters } from '../outputs/loaded-adapters.js';

export function loaderCalls(
  policy: string,
  adapters: LoadedAdapters,
  state: EngineState,
  baseModelNow: () => string | undefined,
): LoaderServiceImplementation<GrpcCallFacts> {
  const checkPolicy = (asked: string) => {
    if (asked !== policy) throw loaderErrors.policyUnknown({ policy: asked });
  };
  return {
    async prepare({ policy: asked, version, manifestDigest }, { signal }) {
      checkPolicy(asked);
      const baseModel = baseModelNow();
      if (baseModel === undefined) throw loaderErrors.engineNotReady({ reason: state.current.reason });
      // The base is on every engine.
      if (version === baseVersion(policy)) return { already: true };
      return adapters.prepare({ policy, version, manifestDigest }, baseModel, signal);
    },
    async retire({ policy: asked, version }) {
      checkPolicy(asked);
      return { already: !(await adapters.retire(version)) };
    },
    async *watch(_request, { signal }): AsyncGenerator<WatchResponse> {
      for await (const engine of state.watch(signal)) yield { engine };
    },
  };
}
