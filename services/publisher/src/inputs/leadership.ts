// What the leading publisher does, from the moment it leads to the moment it does not.
//
// In: leadership. Out: a chain that has begun, a system that follows it, every trained version decided in its order, old
// versions retired. It begins by mending what another left unfinished.
import { asBacktalkError, type BacktalkError, type Clock, type FactReader } from '@backtalk/kit';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { isDecided } from '../domain/policy-state.js';
import { baseVersionOf } from '../domain/versions.js';
import type { PublisherEvents } from '../events.js';
import type { Announcer } from '../outputs/announcer.js';
import type { StagedChain } from '../outputs/staged-chain.js';
import type { Retirement } from './retirement.js';
import type { Swap } from './swap.js';
import { undecidedFacts } from './undecided-facts.js';

export interface LeaderParts {
  readonly policy: string;
  readonly chain: StagedChain;
  readonly reader: FactReader;
  readonly announcer: Announcer;
  readonly swap: Swap;
  readonly retirement: Retirement;
  readonly events: PublisherEvents;
  readonly clock: Clock;
  readonly sweepMs: number;
  /** Starts taking new facts; called once what is old has been dealt with. */
  readonly consume: () => Promise<void>;
  /** Ends the service. */
  readonly fail: (error: BacktalkError) => void;
}

const retryMs = 500;

export class Leader {
  private deciding: Promise<unknown> = Promise.resolve();
  /** Every version trained up to here is decided. */
  private decidedSequence = 0;
  private failed = false;

  constructor(private readonly parts: LeaderParts) {}

  /** Runs until the signal aborts. */
  async lead(signal: AbortSignal): Promise<void> {
    await this.untilItWorks('begin', signal, () => this.begin());
    await this.untilItWorks('consume', signal, () => this.parts.consume());
    // What an earlier leader left undecided would come again only after its ack wait.
    const catchingUp = this.untilItWorks('catch up', signal, () => this.decideUpTo(undefined));
    while (!signal.aborted && !this.failed) {
      await this.attempt('sweep', () => this.upkeep());
      await this.wait(this.parts.sweepMs, signal);
    }
    await catchingUp;
  }

  /** Decides this version, or all, and before it every older one that is not decided: one candidate at a time, in order. */
  decideUpTo(sequence: number | undefined): Promise<void> {
    const mine = this.deciding.then(() => this.decideInOrder(sequence));
    // The next one does not care how this one ends; its own caller does.
    this.deciding = mine.catch(() => undefined);
    return mine;
  }

  private async begin(): Promise<void> {
    const { chain, policy, announcer } = this.parts;
    const state = await chain.reload();
    if (state.sequence === 0) {
      const version = baseVersionOf(policy);
      await chain.append(state, { version, stage: WeightsStaged_Stage.STAGE_STABLE, why: 'the base model' });
    }
    await announcer.converge();
    // Gateways that heard an earlier publisher's routes but not its Commit are told again.
    await announcer.announce();
  }

  private async upkeep(): Promise<void> {
    await this.parts.announcer.converge();
    await this.parts.retirement.sweep();
  }

  private async decideInOrder(sequence: number | undefined): Promise<void> {
    const { policy, reader, chain, swap } = this.parts;
    const parts = { policy, reader, isDecided: (version: string) => isDecided(chain.state, version) };
    const undecided = await undecidedFacts(parts, this.decidedSequence + 1, sequence);
    for (const fact of undecided) {
      await swap.decide(fact.message, fact.trace);
      this.decidedSequence = fact.sequence;
    }
  }

  private async untilItWorks(work: string, signal: AbortSignal, act: () => Promise<void>): Promise<void> {
    while (!signal.aborted && !this.failed && !(await this.attempt(work, act))) await this.wait(retryMs, signal);
  }

  /** True when it worked. */
  private async attempt(work: string, act: () => Promise<void>): Promise<boolean> {
    try {
      await act();
      return true;
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      this.parts.events.workFailed(work, error);
      if (error.retry === 'stop') {
        this.failed = true;
        this.parts.fail(error);
      }
      return false;
    }
  }

  private async wait(ms: number, signal: AbortSignal): Promise<void> {
    // An aborted wait is an end like any other.
    await this.parts.clock.sleep(ms, signal).catch(() => undefined);
  }
}
