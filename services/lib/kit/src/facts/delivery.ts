// What a handler gets beside the fact, and what becomes of a failed one. Pure.
import type { BacktalkError } from '../errors/backtalk-error.js';
import type { FactName } from '../topology/catalogue.js';
import type { StoredFact } from './stored-fact.js';

export interface Held {
  /** Settles the fact for good. Resolves when the broker has confirmed it; may be called again after an error. */
  ack(): Promise<void>;
  /** Gives the fact back: it is delivered anew, to this or another instance. */
  release(delayMs?: number): void;
}

export interface Delivery {
  /** True when the fact was delivered before, here or elsewhere: its effects may be there already. */
  readonly redelivered: boolean;
  /** 1 at the first delivery. */
  readonly deliveries: number;
  /** Aborted when the consumer stops and the handler has used up the time it had left. */
  readonly signal: AbortSignal;
  /** The handler may resolve without settling the fact: it stays un-acked and alive until the result's `ack`. */
  hold(): Held;
}

export type FactHandler<N extends FactName> = (fact: StoredFact<N>, delivery: Delivery) => Promise<void>;

type Verdict =
  | { readonly kind: 'retry' }
  /** The fact is not to blame: it waits in flight until what it needs is back, and no delivery is counted. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'dead' }
  | { readonly kind: 'fatal' };

/** A store that several nodes see may show one what another has put minutes later: with the usual pauses this is nine of them. */
const lateTimes = 3;

/** What happens to a failed fact follows from the error: status 503 says that something it needs cannot be reached. */
export function verdictOn(error: BacktalkError, tries: number, triesMax: number): Verdict {
  if (error.retry === 'stop') return { kind: 'fatal' };
  if (error.retry === 'never') return { kind: 'dead' };
  if (error.status === 503) return { kind: 'wait' };
  const most = error.code === 'blob_missing' ? triesMax * lateTimes : triesMax;
  return tries >= most ? { kind: 'dead' } : { kind: 'retry' };
}
