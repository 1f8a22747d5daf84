// Which turns a trim takes. In: what the log holds of each turn, without text, and what batches say. Out: turns that go, session facts
// that go with them, and turns that stay though they are old, each with the first reason that holds. Pure.
//
// A turn that stays keeps the turns before it in its conversation, without which it could not be read.
import type { FactHeadersRow, FactName } from '@backtalk/kit';
import type { BatchClosed } from '@backtalk/proto/facts';

/** Where a person's "no" stands (`turn.withheld`) is not among them: it goes by age alone. */
export const trimmedFacts = [
  'turnOpened',
  'turnCompleted',
  'turnContinued',
  'turnJudged',
  'judgementAsked',
  'turnRejudged',
  'feedbackGiven',
  'sampleTaken',
  'sessionEnded',
  'sessionClosed',
] as const;
type TrimmedFact = (typeof trimmedFacts)[number];
export type TrimRow = Pick<FactHeadersRow<TrimmedFact>, 'name' | 'sequence' | 'timeMs' | 'bytes' | 'payload'> & {
  readonly headers: Pick<FactHeadersRow<TrimmedFact>['headers'], 'parent' | 'session'>;
  readonly ids: Readonly<Partial<Record<string, string | number>>>;
};

export interface TrimmedRow {
  readonly sequence: number;
  readonly bytes: number;
  readonly payload: string | undefined;
}

/** `batch`: of a policy's newest batch. `candidate`: judged, and in no batch yet. `in_progress`: a service has not settled a fact of it. */
export const needs = ['batch', 'candidate', 'in_progress', 'continued'] as const;
export type Need = (typeof needs)[number];

export interface TrimPlan {
  readonly turns: number;
  /** In the order in which they go: of one turn, its marks last. */
  readonly rows: readonly TrimmedRow[];
  /** Old turns that stay. */
  readonly stays: Readonly<Record<Need, number>>;
}

interface Bounds {
  /** What is said of a turn last is older: milliseconds since 1970. */
  readonly beforeMs: number;
  /** Turns that the trainer still needs go as well. */
  readonly alsoNeeded: boolean;
  readonly settled: ReadonlyMap<FactName, number>;
}

interface Turn {
  newestMs: number;
  isInProgress: boolean;
  readonly policies: Set<string>;
  readonly parents: Set<string>;
  readonly sessions: Set<string>;
  readonly facts: TrimmedRow[];
  readonly marks: TrimmedRow[];
}

interface SessionFact extends TrimmedRow {
  readonly session: string;
}

export class TrimPlanner {
  private readonly turns = new Map<string, Turn>();
  private readonly sessionFacts: SessionFact[] = [];
  private readonly newest = new Map<string, ReadonlySet<string>>();
  private readonly taken = new Set<string>();

  constructor(private readonly bounds: Bounds) {}

  /** In the order of the log. */
  addBatch({ policy, samples, settled }: Pick<BatchClosed, 'policy' | 'samples' | 'settled'>): void {
    if (samples.length > 0) this.newest.set(policy, new Set(samples.map(({ turn }) => turn)));
    for (const { turn } of [...samples, ...settled]) this.taken.add(`${policy} ${turn}`);
  }

  add(row: TrimRow): void {
    const { sequence, bytes, payload } = row;
    const { session = '', turn } = row.ids;
    if (turn === undefined) this.addSessionFact(row, { sequence, bytes, payload, session: String(session) });
    else this.addToTurn(this.turnOf(String(turn)), row, { sequence, bytes, payload });
  }

  plan(): TrimPlan {
    const kept = new Map<string, Need | 'young'>();
    for (const [id, turn] of this.turns) {
      const why = this.whyKept(id, turn);
      if (why !== undefined) kept.set(id, why);
    }
    for (const id of [...kept.keys()]) this.keepBefore(id, kept);
    const keptSessions = new Set([...kept.keys()].flatMap((id) => [...(this.turns.get(id)?.sessions ?? [])]));
    const going = [...this.turns].filter(([id]) => !kept.has(id)).map(([, turn]) => turn);
    return {
      turns: going.length,
      rows: [
        ...going.flatMap(({ facts, marks }) => [...facts, ...marks]),
        ...this.sessionFacts.filter(({ session }) => !keptSessions.has(session)),
      ],
      stays: {
        batch: count(kept, 'batch'),
        candidate: count(kept, 'candidate'),
        in_progress: count(kept, 'in_progress'),
        continued: count(kept, 'continued'),
      },
    };
  }

  private turnOf(id: string): Turn {
    const known = this.turns.get(id);
    if (known !== undefined) return known;
    const flags = { newestMs: 0, isInProgress: false };
    const made = { ...flags, policies: new Set<string>(), parents: new Set<string>(), sessions: new Set<string>() };
    const turn: Turn = { ...made, facts: [], marks: [] };
    this.turns.set(id, turn);
    return turn;
  }

  private addToTurn(turn: Turn, { name, timeMs, ids, headers, sequence }: TrimRow, stored: TrimmedRow): void {
    // An operator's asking is nothing that was said of the turn.
    if (name !== 'judgementAsked' && name !== 'turnRejudged') turn.newestMs = Math.max(turn.newestMs, timeMs);
    (name === 'sampleTaken' ? turn.marks : turn.facts).push(stored);
    if (headers.parent !== undefined) turn.parents.add(headers.parent);
    if (headers.session !== undefined) turn.sessions.add(headers.session);
    // The trainer settles what it is given by batches, not in the order of the log.
    if (name === 'turnJudged') turn.policies.add(String(ids['policy']));
    else if (this.isInProgress(name, sequence)) turn.isInProgress = true;
  }

  private addSessionFact({ name, timeMs }: TrimRow, fact: SessionFact): void {
    const isNeeded = this.isInProgress(name, fact.sequence) && !this.bounds.alsoNeeded;
    if (timeMs < this.bounds.beforeMs && !isNeeded) this.sessionFacts.push(fact);
  }

  private isInProgress(name: TrimmedFact, sequence: number): boolean {
    return sequence > (this.bounds.settled.get(name) ?? Number.MAX_SAFE_INTEGER);
  }

  private whyKept(id: string, turn: Turn): Need | 'young' | undefined {
    if (turn.newestMs >= this.bounds.beforeMs) return 'young';
    if (this.bounds.alsoNeeded) return undefined;
    if ([...this.newest.values()].some((batch) => batch.has(id))) return 'batch';
    if ([...turn.policies].some((policy) => !this.taken.has(`${policy} ${id}`))) return 'candidate';
    return turn.isInProgress ? 'in_progress' : undefined;
  }

  private keepBefore(id: string, kept: Map<string, Need | 'young'>): void {
    const waiting = [id];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      for (const parent of this.turns.get(next)?.parents ?? []) {
        if (kept.has(parent) || !this.turns.has(parent)) continue;
        kept.set(parent, 'continued');
        waiting.push(parent);
      }
    }
  }
}

function count(kept: ReadonlyMap<string, string>, need: Need): number {
  return [...kept.values()].filter((why) => why === need).length;
}
