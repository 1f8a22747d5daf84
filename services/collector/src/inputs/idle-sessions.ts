// Every so often: closes the sessions in which nothing was said for too long, by the broker's clock.
import { newTrace, type Clock } from '@backtalk/kit';
import { SessionClosed_Reason } from '@backtalk/proto/facts';
import type { Rebuilder } from '../outputs/rebuild.js';
import { closeSession } from './close-session.js';
import type { LinkParts } from './link-turn.js';
import type { OneAtATime } from './one-at-a-time.js';

const batchMax = 100;

export interface IdleSessionParts extends LinkParts {
  readonly clock: Clock;
  readonly brokerNowMs: () => Promise<number>;
  readonly rebuilder: Rebuilder;
  readonly order: OneAtATime;
  readonly idleMs: number;
  readonly everyMs: number;
}

export class IdleSessions {
  private cancel: (() => void) | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly parts: IdleSessionParts) {}

  start(): void {
    this.cancel = this.parts.clock.timer(this.parts.everyMs, () => {
      this.running = this.look().finally(() => {
        if (this.cancel !== undefined) this.start();
      });
    });
  }

  async stop(): Promise<void> {
    this.cancel?.();
    this.cancel = undefined;
    await this.running;
  }

  /** One look; a failure is told and the next look tries again. */
  async look(): Promise<void> {
    const { index, events, brokerNowMs, idleMs, rebuilder, order } = this.parts;
    try {
      await order.run(() => rebuilder.ensureReady());
      for (const session of await index.idleSince((await brokerNowMs()) - idleMs, batchMax)) {
        await order.run(() => closeSession(this.parts, session, SessionClosed_Reason.REASON_IDLE, newTrace()));
      }
      events.openSessions(await index.openSessions());
    } catch (error) {
      events.idleLookFailed(error);
    }
  }
}
