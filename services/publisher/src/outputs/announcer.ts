// Makes the whole system follow the chain: `load`, then `routes`, then Commit to every gateway. One at a time, and
// always with the newest state, so that an older word never overtakes a newer one.
import type { Trace } from '@backtalk/kit';
import { loadSetOf, routesOf } from '../domain/standing.js';
import { stableOf, type PolicyState } from '../domain/policy-state.js';
import { numberOf } from '../domain/versions.js';
import type { PublisherEvents } from '../events.js';
import type { Gateways } from './gateways.js';
import type { StagedChain } from './staged-chain.js';
import type { StandingBoard } from './standing-board.js';

export interface Announced {
  readonly milliseconds: number;
  readonly gateways: number;
}

type Reached = (step: 'routes_written' | 'committed') => void | Promise<void>;

export class Announcer {
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly chain: StagedChain,
    private readonly board: StandingBoard,
    private readonly gateways: Gateways,
    private readonly events: PublisherEvents,
  ) {}

  writeLoad(): Promise<boolean> {
    return this.inTurn(() => this.board.writeLoad(this.chain.state));
  }

  /** Everyone routes to the stable version, or will as soon as they can be told. */
  announce(reached: Reached = () => undefined, trace?: Trace): Promise<Announced> {
    return this.inTurn(async () => {
      const { state } = this.chain;
      await this.board.writeRoutes(state);
      await reached('routes_written');
      const announced = await this.gateways.commit(routesOf(state), trace);
      this.events.routed(state.fence, announced.milliseconds, stableNumber(state));
      await reached('committed');
      await this.board.writeLoad(state);
      return announced;
    });
  }

  /** Mends what a stopped publisher left unsaid; says nothing where nothing is amiss. */
  converge(): Promise<void> {
    return this.inTurn(async () => {
      const { state } = this.chain;
      const changed: string[] = [];
      if (await this.board.writeLoad(state)) changed.push('load');
      if (await this.board.writeRoutes(state)) changed.push('routes');
      if (changed.includes('routes')) await this.gateways.commit(routesOf(state));
      if (changed.length > 0) this.events.converged(state.fence, changed, stableNumber(state));
    });
  }

  /** Versions that every loader should hold. */
  wanted(): readonly string[] {
    return loadSetOf(this.chain.state).versions.map(({ version }) => version);
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.last.then(work, work);
    // The next in turn does not care how this one ends; its own caller does.
    this.last = mine.catch(() => undefined);
    return mine;
  }
}

function stableNumber(state: PolicyState): number {
  return numberOf(state.policy, stableOf(state)) ?? 0;
}
