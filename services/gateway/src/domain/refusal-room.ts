// May one more "no" to training go into the log, where the share of its key is full?
//
// In: turns that are not stored. Out: whether one holds a "no" that the log lacks, and whether its key may add one more.
// Sessions cost nothing to begin, so it is counted by key; what finds no room is refused, not lost. No I/O.
import type { Clock } from '@backtalk/kit';
import type { Turn } from './turn.js';

type Refusing = Pick<Turn, 'caller' | 'session' | 'consent'>;

/** Of a key a day, at each gateway: 4 MB of the log. */
const refusalsPerDay = 4_000;
const dayMs = 24 * 60 * 60 * 1000;

export class RefusalRoom {
  private readonly written = new Map<string, number>();
  private readonly sessions = new Set<string>();
  private day = 0;

  constructor(private readonly clock: Clock) {}

  /**
   * One a day of each session: it is as young in the log as what follows it.
   * @param followsNo the newest turn that is remembered of the session said no: none said yes since
   */
  isNew(turn: Refusing, followsNo: boolean): boolean {
    this.beginDay();
    return !turn.consent.train && !(followsNo && this.sessions.has(sessionOf(turn)));
  }

  permits(keyId: string): boolean {
    this.beginDay();
    return (this.written.get(keyId) ?? 0) < refusalsPerDay;
  }

  add(turn: Refusing): void {
    this.beginDay();
    const { keyId } = turn.caller;
    this.written.set(keyId, (this.written.get(keyId) ?? 0) + 1);
    this.sessions.add(sessionOf(turn));
  }

  private beginDay(): void {
    const day = Math.floor(this.clock.now() / dayMs);
    if (day === this.day) return;
    this.day = day;
    this.written.clear();
    this.sessions.clear();
  }
}

function sessionOf({ caller, session }: Refusing): string {
  return `${caller.tenant} ${caller.user} ${session}`;
}
