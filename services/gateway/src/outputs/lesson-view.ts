// What each person wants of their answers, as requests need it: from the log, at most a moment old.
//
// In: a person of a policy. Out: the lessons that the model is to be shown in their answers. Where the log does not answer in time, none
// are: no answer waits for more than that.
import { asBacktalkError, within, type Clock, type StoredFact } from '@backtalk/kit';
import type { GatewayEvents } from '../events.js';
import type { Caller } from '../domain/caller.js';
import { knownLessons } from '../domain/lesson.js';
import { lessonsToShow, notYetLessons, standingWish, type Shown, type StandingWish } from '../domain/shown-lessons.js';
import type { FactLog } from './fact-log.js';

interface Said extends StandingWish {
  readonly timeMs: number;
}

interface Known {
  /** Undefined until it was read, or since it was changed. */
  shown: readonly Shown[] | undefined;
  /** Standing wishes of the last day by their words, oldest first. */
  readonly said: Map<string, Said>;
  /** Sequence of the last judgement that was read. */
  through: number;
  readAtMs: number;
  reading: Promise<void> | undefined;
}

type Judged = Pick<StoredFact<'turnJudged'>, 'message' | 'sequence' | 'timeMs'>;

interface LessonLog extends Pick<FactLog, 'lessonsOf' | 'ownerOf'> {
  judgedSince(...of: Parameters<FactLog['judgedSince']>): Promise<readonly Judged[]>;
}

const freshMs = 2_000;
/** People who are answered in the same moment share what is read of all. */
const sharedMs = 1_000;
/** For the first answer of a person here; later ones take what was read before, while it is read again. */
const firstWaitMs = 500;
/** Of people: the one who asked longest ago is read anew. */
const peopleMax = 10_000;
const saidMax = 12;
/** What no batch has taken by then is said again, or not meant. */
const saidMs = 24 * 3_600_000;

export class LessonView {
  private readonly people = new Map<string, Known>();

  constructor(
    private readonly log: LessonLog,
    private readonly clock: Clock,
    private readonly events: Pick<GatewayEvents, 'lessonsUnread'>,
  ) {}

  async of(policy: string, caller: Pick<Caller, 'tenant' | 'user'>): Promise<readonly Shown[]> {
    const known = this.known(`${policy}\n${caller.tenant}\n${caller.user}`);
    if (known.shown === undefined || this.clock.now() - known.readAtMs >= freshMs)
      known.reading ??= this.read(policy, caller, known).finally(() => {
        known.reading = undefined;
      });
    if (known.shown === undefined && known.reading !== undefined) await within(this.clock, firstWaitMs, known.reading);
    return known.shown ?? [];
  }

  /** Something was said of a tenant's lessons: the next answer of each of its people waits for it. */
  changed(policy: string, tenant: string): void {
    // What is being read now may be from before: it goes to what is let go of here.
    for (const [person, known] of this.people)
      if (person.startsWith(`${policy}\n${tenant}\n`))
        this.people.set(person, { ...known, shown: undefined, reading: undefined });
  }

  private known(person: string): Known {
    const nothing = { shown: undefined, said: new Map<string, Said>(), through: 0, readAtMs: 0, reading: undefined };
    const known: Known = this.people.get(person) ?? nothing;
    this.people.delete(person);
    this.people.set(person, known);
    for (const oldest of this.people.keys()) {
      if (this.people.size <= peopleMax) break;
      this.people.delete(oldest);
    }
    return known;
  }

  private async read(policy: string, caller: Pick<Caller, 'tenant' | 'user'>, known: Known): Promise<void> {
    try {
      for (const { message, sequence, timeMs } of await this.log.judgedSince(policy, caller, known.through + 1)) {
        known.through = Math.max(known.through, sequence);
        const wish = standingWish(message);
        if (wish === undefined) continue;
        // Said again, it is the newest.
        known.said.delete(wish.text);
        known.said.set(wish.text, { ...wish, timeMs });
      }
      for (const [words, { timeMs }] of known.said)
        if (known.said.size > saidMax || timeMs < this.clock.now() - saidMs) known.said.delete(words);
      const { lessons, changes } = await this.log.lessonsOf(policy, caller.tenant, sharedMs);
      const current = knownLessons(policy, lessons, changes).map(({ lesson }) => lesson);
      // Of a person who was forgotten meanwhile, the log knows no turn any more.
      for (const { text, turn } of notYetLessons(current, [...known.said.values()], caller))
        if ((await this.log.ownerOf(caller, turn)) === undefined) known.said.delete(text);
      known.shown = lessonsToShow(current, [...known.said.values()], caller);
    } catch (thrown) {
      this.events.lessonsUnread(asBacktalkError(thrown));
      known.shown ??= [];
    }
    known.readAtMs = this.clock.now();
  }
}
