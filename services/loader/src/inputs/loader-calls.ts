// Answers the publisher's calls: Prepare, Retire, Watch. All three may be repeated.
import type { GrpcCallFacts } from '@backtalk/kit';
import type { LoaderServiceImplementation, WatchResponse } from '@backtalk/proto/control';
import { baseVersionOf } from '../domain/versions.js';
import { loaderErrors } from '../errors.js';
import type { EngineBoard } from '../outputs/engine-board.js';
import type { HeldAdapters } from '../outputs/held-adapters.js';

export interface LoaderCallsParts {
  readonly policy: string;
  readonly adapters: HeldAdapters;
  readonly board: EngineBoard;
  readonly baseModel: () => string | undefined;
}

export function loaderCalls(parts: LoaderCallsParts): LoaderServiceImplementation<GrpcCallFacts> {
  const { policy, adapters, board } = parts;
  const checkPolicy = (asked: string) => {
    if (asked !== policy) throw loaderErrors.policyUnknown({ policy: asked });
  };
  return {
    async prepare({ policy: asked, version, manifestDigest }, { signal }) {
      checkPolicy(asked);
      const baseModel = parts.baseModel();
      if (baseModel === undefined) throw loaderErrors.engineNotReady({ reason: board.current.reason });
      // The base is on every engine.
      if (version === baseVersionOf(policy)) return { already: true };
      return adapters.prepare({ policy, version, manifestDigest }, baseModel, signal);
    },
    async retire({ policy: asked, version }) {
      checkPolicy(asked);
      return { already: !(await adapters.retire(version)) };
    },
    async *watch(_request, { signal }): AsyncGenerator<WatchResponse> {
      for await (const engine of board.watch(signal)) yield { engine };
    },
  };
}
