// What the leading publisher does, from the moment it leads to the moment it does not. Out: a chain that has begun, a system
// that follows it, every trained version decided in its order, old versions retired. It begins by mending what another left
// unfinished.
import { asBacktalkError, backOffMs, baseVersion, untilAborted } from '@backtalk/kit';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import type { Retirement } from './retirement.js';
import type { ReleaseParts, Swap } from './swap.js';
import type { TrainedFacts } from './trained-facts.js';

const retryMs = 500;
/** What cannot be decided costs a whole try each time. */
const decideAgainMostMs = 30_000;

export class Leader {
  private failed = false;
  private begun = false;

  constructor(
    private readonly parts: ReleaseParts,
    private readonly trained: TrainedFacts,
    private readonly retirement: Retirement,
    private readonly swap: Pick<Swap, 'askAhead'>,
    private readonly everyMs: number,
    private readonly fail: (error: unknown) => void,
  ) {}

  /** Since it leads, it has read what others decided. */
  get hasBegun(): boolean {
    return this.begun;
  }

  /** Runs until the signal aborts. */
  async lead(signal: AbortSignal): Promise<void> {
    const { chain, policy, routing } = this.parts;
    this.begun = false;
    await this.untilItWorks('begin', signal, async () => {
      const state = await chain.reload();
      if (state.sequence === 0) {
        const stage = WeightsStaged_Stage.STAGE_STABLE;
        await chain.append(state, { version: baseVersion(policy), stage, why: 'the base model' });
      }
      this.begun = true;
      await routing.converge();
      // Gateways that got an earlier publisher's routes but not its Commit get one now.
      await routing.route();
    });
    await this.untilItWorks('consume', signal, () => this.trained.start());
    // What an earlier leader left undecided would come again only after its ack wait.
    // A try under way is not waited for: it ends where it finds that this one leads no more, and the next one here waits for that.
    const decide = () => untilAborted(this.trained.decideUpTo(undefined), signal);
    const catchingUp = this.untilItWorks('catch up', signal, decide, decideAgainMostMs);
    while (!signal.aborted && !this.failed) {
      await this.attempt('upkeep', signal, async () => {
        // The last word of a publisher that led before may come after this one has begun.
        await chain.follow();
        await routing.converge();
        await this.retirement.sweep();
      });
      await this.attempt('ask ahead', signal, () => untilAborted(this.swap.askAhead(), signal));
      await this.wait(this.everyMs, signal);
    }
    await catchingUp;
  }

  private async untilItWorks(
    work: string,
    signal: AbortSignal,
    act: () => Promise<void>,
    mostMs = retryMs,
  ): Promise<void> {
    for (let tries = 1; !signal.aborted && !this.failed; tries += 1) {
      if (await this.attempt(work, signal, act)) return;
      await this.wait(backOffMs(tries, { firstMs: retryMs, mostMs }), signal);
    }
  }

  /** True when it worked. */
  private async attempt(work: string, signal: AbortSignal, act: () => Promise<void>): Promise<boolean> {
    try {
      await act();
      return true;
    } catch (thrown) {
      if (signal.aborted && thrown === signal.reason) return false;
      const error = asBacktalkError(thrown);
      this.parts.events.workFailed(this.parts.policy, work, error);
      if (error.retry === 'stop') {
        this.failed = true;
        this.fail(error);
      }
      return false;
    }
  }

  private async wait(ms: number, signal: AbortSignal): Promise<void> {
    // An aborted wait is an end like any other.
    await this.parts.clock.sleep(ms, signal).catch(() => undefined);
  }
}
