// What a release works with, without a broker: a chain in memory, engines by name, and what was done. For tests only.
import { asBacktalkError, BacktalkError } from '@backtalk/kit';
import { FakeClock } from '@backtalk/kit/testing';
import { WeightsStaged, WeightsStaged_Stage } from '@backtalk/proto/facts';
import { emptyState, fold, type PolicyState } from '../domain/policy-state.js';
import type { ReleaseParts } from '../inputs/swap.js';

export interface EngineStandIn {
  readonly pools: readonly string[];
  readonly versions: readonly string[];
  /** Left out, no version can be loaded. */
  readonly loads?: (version: string) => Promise<void>;
}

const cannotLoad = new BacktalkError({ code: 'weights_missing', retry: 'later', message: 'They are gone.' });
const superseded = new BacktalkError({ code: 'fact_superseded', retry: 'later', message: 'Another was first.' });

/** They load what they can, and their leases say so at once. */
function loadersOf(engines: readonly EngineStandIn[]) {
  const loaders = engines.map((engine, at) => ({
    instance: String(at),
    engine: { ...engine, capabilities: [], ready: true },
  }));
  return {
    ready: () => loaders,
    prepare: async (asked: typeof loaders, { version }: { readonly version: string }) => {
      const outcomes = await Promise.all(
        asked.map(async ({ engine: { loads = () => Promise.reject(cannotLoad) } }) =>
          loads(version).then(() => undefined, asBacktalkError),
        ),
      );
      return {
        ready: asked.filter((_, at) => outcomes[at] === undefined),
        failed: outcomes.filter((error) => error !== undefined),
        seconds: 0,
      };
    },
    leased: (asked: typeof loaders) => Promise.resolve(asked),
  };
}

/** A policy whose third version answers, and what was done to it. */
export function policyOf(engines: readonly EngineStandIn[]) {
  const [done, kept, said]: [string[], string[], string[]] = [[], [], []];
  const facts: Partial<WeightsStaged>[] = [];
  let [state, sequence] = [emptyState('p'), 0];
  const append = (after: PolicyState, fact: Partial<WeightsStaged>) => {
    if (after !== state) return Promise.reject(superseded);
    state = fold(state, { sequence: (sequence += 1), message: WeightsStaged.fromPartial(fact) });
    facts.push(fact);
    done.push(`${fact.version ?? ''} ${fact.stage ?? ''}`);
    return Promise.resolve(state);
  };
  for (const version of ['p-v0', 'p-v1', 'p-v2'])
    void append(state, { version, stage: WeightsStaged_Stage.STAGE_STABLE, manifestDigest: 'digest' });
  done.length = 0;
  const written = state;
  let unread: typeof state | undefined;
  const clock = new FakeClock();
  const events = {
    swapping: (_version: string, _parent: unknown, work: () => Promise<unknown>) => work(),
  };
  const parts = {
    policy: 'p',
    chain: {
      get state() {
        return state;
      },
      append,
      reload: () => {
        state = unread ?? state;
        return Promise.resolve(state);
      },
    },
    loaders: {
      ...loadersOf(engines),
      keeping: async (version: string, work: () => Promise<void>) => {
        await work();
        kept.push(`${version} until ${done.at(-1)}`);
      },
    },
    routing: {
      writeLoadSet: () => Promise.resolve(true),
      route: () => Promise.resolve({ milliseconds: 0, gateways: 0 }),
    },
    events: new Proxy(events, {
      get: (known, name) => (Reflect.get(known, name) as unknown) ?? (() => said.push(String(name))),
    }),
    assertLeading: () => undefined,
    clock,
  } as unknown as ReleaseParts;
  /** What a publisher has read that led until some version was stable, and has just taken over again. */
  const readUntil = (versions: readonly string[]) => {
    unread = written;
    state = { ...written, line: versions, sequence: versions.length };
  };
  return { parts, clock, done, facts, kept, said, readUntil };
}
