// Questions to the broker and their answers, over one inbox. In: subject, bytes, a deadline. Out: the answer, or an error
// that says whether trying later makes sense. A question is asked once; those of one turn of the event loop leave in one
// write, because a write costs more than a question. When the connection goes, those that wait are told at once: what was
// asked may have been done or not.
import { randomBytes } from 'node:crypto';
import type { Msg, MsgHdrs, NatsConnection } from 'nats';
import type { BacktalkError } from '../errors/backtalk-error.js';
import type { Clock } from '../time/clock.js';
import { inboxPrefixOf } from '../topology/users.js';
import { brokerErrors } from './errors.js';

export interface Question {
  readonly subject: string;
  readonly data?: Uint8Array | string;
  readonly headers?: MsgHdrs;
  readonly timeoutMs: number;
  /** How long it may wait for others to leave in the same write; it leaves at once when left out. */
  readonly companyMs?: number | undefined;
  /** Words for people. */
  readonly doing: string;
}

interface Waiting {
  readonly question: Question;
  readonly answered: (message: Msg) => void;
  readonly failed: (error: BacktalkError) => void;
  readonly cancelTimer: () => void;
}

export class Requests {
  private readonly inbox: string;
  private readonly waiting = new Map<string, Waiting>();
  /** Tokens of questions that wait for the end of this turn of the event loop, or for company. */
  private unsent: string[] = [];
  private leaving = false;
  private cancelLeaving: (() => void) | undefined;
  private asked = 0;

  constructor(
    private readonly nc: NatsConnection,
    user: string,
    private readonly clock: Clock,
  ) {
    this.inbox = `${inboxPrefixOf(user)}.${randomBytes(12).toString('hex')}`;
    nc.subscribe(`${this.inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.answer(message);
      },
    });
  }

  ask(question: Question): Promise<Msg> {
    this.asked += 1;
    const token = this.asked.toString(36);
    return new Promise((answered, failed) => {
      const cancelTimer = this.clock.timer(question.timeoutMs, () => {
        this.fail(token, brokerErrors.brokerUnavailable({ doing: question.doing }));
      });
      this.waiting.set(token, { question, answered, failed, cancelTimer });
      this.unsent.push(token);
      this.leave(question.companyMs);
    });
  }

  private leave(companyMs: number | undefined): void {
    if (this.leaving) return;
    if (companyMs !== undefined) {
      this.cancelLeaving ??= this.clock.timer(companyMs, () => this.send());
      return;
    }
    this.leaving = true;
    setImmediate(() => this.send());
  }

  /** The broker has refused a subject; it does not say for which question. */
  forbidden(subject: string): void {
    for (const [token, { question }] of this.waiting) {
      if (question.subject === subject) this.fail(token, brokerErrors.brokerForbidden({ subject }));
    }
  }

  disconnected(): void {
    for (const [token, { question }] of this.waiting)
      this.fail(token, brokerErrors.brokerUnavailable({ doing: question.doing }));
  }

  /** The client makes one packet of what it is given at once. Questions that were given up meanwhile are not asked. */
  private send(): void {
    const tokens = this.unsent;
    this.unsent = [];
    this.leaving = false;
    this.cancelLeaving?.();
    this.cancelLeaving = undefined;
    for (const token of tokens) {
      const question = this.waiting.get(token)?.question;
      if (question === undefined) continue;
      const { subject, data = '', headers, doing } = question;
      const reply = `${this.inbox}.${token}`;
      try {
        this.nc.publish(subject, data, headers === undefined ? { reply } : { reply, headers });
      } catch (error) {
        this.fail(token, brokerErrors.brokerUnavailable({ doing }, error));
      }
    }
  }

  private answer(message: Msg): void {
    const token = message.subject.slice(this.inbox.length + 1);
    const waiting = this.waiting.get(token);
    if (waiting === undefined) return;
    // 503: nobody listens there, as while JetStream starts or elects.
    if (message.headers?.code === 503) {
      this.fail(token, brokerErrors.brokerUnavailable({ doing: waiting.question.doing }));
      return;
    }
    this.waiting.delete(token);
    waiting.cancelTimer();
    waiting.answered(message);
  }

  private fail(token: string, error: BacktalkError): void {
    const waiting = this.waiting.get(token);
    if (waiting === undefined) return;
    this.waiting.delete(token);
    waiting.cancelTimer();
    waiting.failed(error);
  }
}
