// How new wishes stand to earlier ones, asked of the judge's model, where it reads: one request for each new wish. In: the wishes of a batch.
// Out: what the model said, where words do not say the contrary; of what was not asked, or not answered in time or in form, words decide.
// It never throws for want of an answer: a batch closes all the same.
import { Asking, randomMarker, type EnginePool } from '@backtalk/dialects';
import { asBacktalkError } from '@backtalk/kit';

import { wordRelations } from '../domain/lexical-relation.js';
import { readRelations, relationQuestion } from '../domain/relation-question.js';
import type { NewWish, Relate, WishRelation, WishRelations } from '../domain/wish-relation.js';
import type { TrainerEvents } from '../events.js';

/** Of earlier wishes in one request. */
const besideMax = 32;
/** Of one batch, each with a request. */
const wishesMax = 32;
const askedAtOnce = 4;
const callDeadlineMs = 30_000;
/** Of all that is asked about a batch: it waits no longer. */
const askedWithinMs = 60_000;
/** Remembered, so that a batch that is decided anew asks nothing again. */
const pairsMax = 16_384;
const seed = 0;
const answerTokensMax = 512;

export class AskedRelations implements WishRelations {
  private readonly known = new Map<string, WishRelation>();
  private readonly asking: Asking;

  constructor(
    private readonly pool: Pick<EnginePool, 'use' | 'lastModel'>,
    private readonly events: Pick<TrainerEvents, 'wishRead' | 'wishesLeftToWords' | 'judgeFieldsRefused'>,
    private readonly withinMs = askedWithinMs,
  ) {
    this.asking = new Asking({ asked: () => undefined, fieldsRefused: events.judgeFieldsRefused });
  }

  async among(wishes: readonly NewWish[], stopped: AbortSignal): Promise<Relate> {
    const signal = AbortSignal.any([stopped, AbortSignal.timeout(this.withinMs)]);
    const open = this.open(wishes);
    const asked = open.slice(0, wishesMax);
    if (open.length > asked.length) this.events.wishesLeftToWords('over_bound', open.length - asked.length);
    for (let from = 0; from < asked.length; from += askedAtOnce)
      await Promise.all(asked.slice(from, from + askedAtOnce).map((wish) => this.ask(wish, signal, stopped)));
    // What other policies ask meanwhile changes nothing here.
    const known = new Map(this.known);
    const model = this.pool.lastModel;
    const words = wordRelations();
    return (a, b) => {
      const byWords = words(a, b);
      const said = known.get(key(model, a, b)) ?? byWords;
      const isContrary = said !== byWords && said !== 'different' && byWords !== 'different';
      return isContrary ? 'different' : said;
    };
  }

  /** What is not known of this model, each pair once. */
  private open(wishes: readonly NewWish[]): NewWish[] {
    const model = this.pool.lastModel;
    const asked = new Set<string>();
    return wishes.flatMap(({ text, beside }) => {
      const open = beside.slice(0, besideMax).filter((other) => {
        const pair = key(model, text, other);
        const isOpen = other !== text && !this.known.has(pair) && !asked.has(pair);
        asked.add(pair);
        return isOpen;
      });
      return open.length === 0 ? [] : [{ text, beside: open }];
    });
  }

  private async ask(wish: NewWish, signal: AbortSignal, stopped: AbortSignal): Promise<void> {
    const options = { deadlineMs: callDeadlineMs, signal };
    try {
      await this.pool.use(options, async (engine) => {
        const prompt = () => relationQuestion(wish, randomMarker());
        const question = { prompt, seed, answerTokensMax, thinkingTokensMax: 0 };
        const answer = await this.asking.ask(engine, question, options);
        const relations = readRelations(answer.text, wish.beside.length);
        if (relations === undefined) {
          this.events.wishesLeftToWords('unreadable', 1);
          return;
        }
        for (const [at, relation] of relations.entries())
          this.keep(key(engine.model, wish.text, wish.beside[at] ?? ''), relation);
        this.events.wishRead();
      });
    } catch (thrown) {
      stopped.throwIfAborted();
      this.events.wishesLeftToWords(signal.aborted ? 'out_of_time' : asBacktalkError(thrown).code, 1);
    }
  }

  private keep(pair: string, relation: WishRelation): void {
    this.known.set(pair, relation);
    const [oldest] = this.known.keys();
    if (this.known.size > pairsMax && oldest !== undefined) this.known.delete(oldest);
  }
}

/** The same for both orders. */
function key(model: string, ...pair: [string, string]): string {
  return [model, ...pair.sort()].join('\u0000');
}
