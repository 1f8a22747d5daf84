// Closes batches: decides about the turns that wait, writes the fact, then lets go of the messages of every turn that it takes or
// settles. The order is the promise: a message is acked only after the fact that settles its turn is stored.
import { asBacktalkError, isBacktalkError, isInForce, type Clock, type Trace } from '@backtalk/kit';
import { Lesson_State, type BatchClosed, type Lesson, type LessonCase } from '@backtalk/proto/facts';

import type { Questions } from '../domain/asked-elsewhere.js';
import {
  givenUp,
  lessonsBatch,
  measuredBatch,
  settlingBatch,
  trainingBatch,
  turnsSettled,
  wishesOf,
  type ChainEnd,
  type GivingUp,
} from '../domain/batch-fact.js';
import { decideBatch, settleOrWait, type TrainDecision } from '../domain/batch-rule.js';
import { carriedState } from '../domain/carried-state.js';
import { forgottenIn, turnsOfForgotten, type Person } from '../domain/forgotten-people.js';
import { wishesIn } from '../domain/lesson-changes.js';
import { compared, recurring, settledCovers, withCovers } from '../domain/lesson-cover.js';
import { askedTurns, pushedOut, takenUp, withWishes } from '../domain/lesson-ledger.js';
import { newWishes } from '../domain/lesson-matching.js';
import { afterMeasures, lessonsToMeasure, type Measured } from '../domain/lesson-progress.js';
import { isOfTurn, rehearsalFor, saidAgainIn } from '../domain/rehearsal.js';
import { notRepeated, repeatedBatch, stepsToRepeat, type NotRepeated } from '../domain/repeats.js';
import { turnsOf } from '../domain/settled-turns.js';
import { decodePlan } from '../domain/step-plan.js';
import { batchBytesMax } from '../domain/step-size.js';
import { weighTurns, type Weighed } from '../domain/weigh-turns.js';
import { trainerErrors } from '../errors.js';
import type { Ledger, LedgerState } from '../outputs/ledger.js';
import type { PolicyState } from './policy-state.js';
import type { TrainerTools } from './trainer-tools.js';

const acksAtOnce = 64;
/** Of the lessons of one version, so often and so far apart: an engine that starts takes a minute or several. */
const measureTriesMax = 8;
const measureAgainMs = 50_000;
const revisionIn = ({ effective }: TrainDecision, turn: string) =>
  effective.find(({ candidate }) => candidate.turn === turn)?.candidate.judged.revision;
const isHeard = ({ state }: Lesson) => state === Lesson_State.STATE_HEARD;

export class BatchClosing {
  private readonly readSinceMs: number;

  constructor(
    private readonly tools: TrainerTools,
    private readonly state: PolicyState,
    private readonly ledger: Ledger,
    private readonly seed: number,
    private readonly clock: Clock,
  ) {
    this.readSinceMs = clock.now();
  }

  /**
   * Closes a batch if one is ready, or settles turns if enough of them wait for that.
   * @param resting no batch may be trained now; turns are still settled
   * @returns 'closed', or the time until which nothing is ready
   */
  async closeReady(ledger: LedgerState, resting: boolean, signal: AbortSignal): Promise<'closed' | number> {
    const { state, clock } = this;
    const { recipe, events } = this.tools;
    const { chain, line } = ledger;
    if (await this.takeUndone(ledger)) return 'closed';
    if (!resting && (await this.takeProgress(ledger, signal))) return 'closed';
    const { lessons, baselines, steps } = carriedState(chain, line, recipe);
    const context = {
      lessons,
      baselines,
      steps,
      nowMs: clock.now(),
      readSinceMs: this.readSinceMs,
      versionsBack: line.versionsBackFrom(line.nextParent()),
      versionsAfter: (batch: number) => line.versionsAfter(batch),
    };
    const waiting = weighTurns(state.pending.candidates(), context, recipe);
    events.turnsWeighed(state.policy, waiting, lessons);
    const decided = resting
      ? settleOrWait(waiting, recipe, clock.now(), undefined)
      : decideBatch(waiting, recipe, clock.now(), chain.recent());
    const isRepeat = (batch: number) => chain.repeatsAnother(batch);
    const cameToNothing = chain.isGivenUp() || line.cameToNothing(chain.lessonsChangedAt(), isRepeat);
    const rehearsing = { recipe, recent: chain.recent(), cameToNothing };
    const rehearsal = resting || decided.kind !== 'wait' ? undefined : rehearsalFor(waiting, lessons, rehearsing);
    // Steps that are repeated and batches of what is said now take turns; what is rehearsed for an older lesson's sake may be in the former.
    const isSaidNow = decided.kind !== 'wait' || rehearsal?.saidIn !== undefined;
    if (!resting && !(isSaidNow && chain.isRepeating()) && (await this.takeRepeats(ledger))) return 'closed';
    const decision = rehearsal ?? decided;
    if (decision.kind === 'wait') return decision.untilMs ?? Infinity;
    if (decision.kind === 'train') await this.train(ledger, decision, signal);
    else await this.closeMarked(ledger, turnsSettled(this.chainEnd(ledger), decision.settled));
    return 'closed';
  }

  private async train(ledger: LedgerState, wanted: TrainDecision, signal: AbortSignal): Promise<void> {
    const { state, seed } = this;
    const { store, plan, recipe, events } = this.tools;
    const parent = ledger.line.nextParent();
    // Read first: while a whole store is away, no turn is taken for lost.
    const before = await store.manifestOfVersion(state.policy, parent, ledger.line);
    // An adapter's shape is fixed at a policy's first step.
    for (const name of ['loraRank', 'loraAlpha'] as const)
      if (before !== undefined && before[name] !== recipe[name])
        throw trainerErrors.rankChanged({ version: parent, name, trained: before[name], configured: recipe[name] });
    const decision = await this.fitting(wanted);
    if (decision === undefined) return;
    await store.keepPlan(plan);
    const end = this.chainEnd(ledger);
    const lessons = await this.lessonsWith(end, decision, signal);
    // While models were asked about its lessons, the parent may have been burned: what is to be trained is decided anew.
    if (ledger.line.nextParent() !== parent) return;
    const batch = trainingBatch(end, decision, recipe, { parent, planDigest: plan.digest, seed }, lessons);
    const saidAgain = saidAgainIn(batch, decision, recipe);
    // It waits for a batch of turns.
    if (saidAgain !== undefined) return state.pending.learn(saidAgain, { saidAgain: revisionIn(decision, saidAgain) });
    // The batch goes on in the trace of the sample that came first, with links to those of the others.
    const taken = [...decision.effective, ...decision.anchors];
    const traces = taken.flatMap(({ candidate }) => candidate.trace ?? []);
    if (!(await this.closeMarked(ledger, batch, traces))) return;
    for (const lesson of pushedOut(end.state.lessons, lessons)) events.lessonPushedOut(batch, lesson);
    const saidAtMs = decision.effective.map(({ candidate }) => candidate.saidAtMs);
    state.closed = { version: batch.version, saidAtMs };
  }

  /** What was said of lessons is in the ledger before anything else is decided or taken, also while learning rests. */
  async takeChanges(ledger: LedgerState, signal: AbortSignal): Promise<boolean> {
    const changes = await this.ledger.changes(ledger);
    if (changes.length === 0) return false;
    const end = this.chainEnd(ledger);
    const { lessons } = end.state;
    const relate = await this.tools.relations.among(newWishes(lessons, wishesIn(lessons, changes)), signal);
    await this.close(ledger, lessonsBatch(end, changes, relate));
    ledger.forgotten.push(...forgottenIn(changes));
    await this.letGoOf(forgottenIn(changes));
    return true;
  }

  /** What waits of people who are forgotten is in no batch: their facts are deleted, and no fact names them again. */
  private async letGoOf(people: readonly Person[]): Promise<void> {
    const { pending, unconfirmed } = this.state;
    const { own, judged } = turnsOfForgotten(pending.said(), people);
    unconfirmed.push(...pending.take(own));
    for (const { turn, from } of judged) {
      const { later, earlier } = pending.takeApart(turn, from);
      unconfirmed.push(...later);
      // It waits as it was judged before they said anything of it.
      for (const held of earlier) held.release();
    }
    await this.confirm();
  }

  /** The gateway and the commands read the ledger in the log: which lessons are to be learned again, since versions were undone. */
  private async takeUndone(ledger: LedgerState): Promise<boolean> {
    const end = this.chainEnd(ledger);
    const { lessons } = end.state;
    const before = new Map(ledger.chain.last()?.lessons.map(({ id, state }) => [id, state]));
    if (lessons.every(({ id, state }) => before.get(id) === state)) return false;
    await this.close(ledger, measuredBatch(end, [...lessons]));
    return true;
  }

  /** After an undo, what else the burned versions were taught is taught again by their own steps, without what was undone. */
  private async takeRepeats(ledger: LedgerState): Promise<boolean> {
    const { chain, line } = ledger;
    const [number] = stepsToRepeat(chain, line);
    if (number === undefined) return false;
    const end = this.chainEnd(ledger);
    const repeat = await this.repeatOf(ledger, end, number);
    await this.close(ledger, typeof repeat === 'string' ? notRepeated(end, number, repeat) : repeat);
    return true;
  }

  private async repeatOf(ledger: LedgerState, end: ChainEnd, number: number): Promise<BatchClosed | NotRepeated> {
    const { store, turns, recipe } = this.tools;
    const { chain, line } = ledger;
    const batch = await this.ledger.batch(ledger, number);
    const plan = batch === undefined ? undefined : await store.planIfThere(batch);
    if (batch === undefined || plan === undefined) return 'gone';
    const parent = line.nextParent();
    const before = await store.manifestOfVersion(end.policy, parent, line);
    const shape = before ?? recipe;
    if (plan.training.loraRank !== shape.loraRank || plan.training.loraAlpha !== shape.loraAlpha) return 'other_rank';
    const original = chain.originalOf(number);
    const first = original === number ? batch : ((await this.ledger.batch(ledger, original)) ?? batch);
    // Of those who left since: what was said later is new.
    const closedAt = chain.sequenceOf(number) ?? 0;
    const forgotten = ledger.forgotten.filter(({ sequence }) => sequence > closedAt);
    const repeat = repeatedBatch(end, batch, { parent, first, forgotten });
    if (repeat === undefined) return 'nothing_left';
    for (const sample of repeat.samples)
      if (!isOfTurn(sample) || typeof (await turns.source(sample)) !== 'string') return repeat;
    return 'gone';
  }

  /** What the newest version's answers show of each lesson is in the ledger before anything is decided by their states. */
  private async takeProgress(ledger: LedgerState, signal: AbortSignal): Promise<boolean> {
    const { state } = this;
    const { recipe, progress, events } = this.tools;
    const version = ledger.line.nextParent();
    const madeBy = ledger.line.get(version)?.batch;
    if (madeBy === undefined || recipe.method === 'binary' || !this.isToBeMeasured(version)) return false;
    const end = this.chainEnd(ledger);
    const asked = lessonsToMeasure(
      end.state.lessons,
      { batch: madeBy, line: ledger.line },
      ledger.chain.recent().at(-1) ?? [],
      recipe,
    );
    if (asked.length === 0) {
      state.measuring.tries = measureTriesMax;
      return false;
    }
    let measured: Measured;
    try {
      measured = await progress.of(version, asked, { ...recipe, policy: state.policy, batch: madeBy }, signal);
    } catch (thrown) {
      signal.throwIfAborted();
      // They stay as they are until they are asked again.
      events.lessonsNotMeasured(state.policy, version, asBacktalkError(thrown));
      return false;
    }
    if (measured.size === 0) return false;
    state.measuring.tries = measureTriesMax;
    const lessons = afterMeasures(end.state.lessons, measured, madeBy, recipe.learnedShare);
    for (const lesson of lessons) if (measured.has(lesson.id)) events.lessonMeasured(state.policy, version, lesson);
    await this.close(ledger, measuredBatch(end, lessons));
    return true;
  }

  /** Counts a try, where it is time for one. */
  private isToBeMeasured(version: string): boolean {
    const { state, clock } = this;
    if (state.measuring.version !== version) state.measuring = { version, tries: 0, againMs: 0 };
    const { measuring } = state;
    if (measuring.tries >= measureTriesMax || clock.now() < measuring.againMs) return false;
    measuring.tries += 1;
    measuring.againMs = clock.now() + measureAgainMs;
    return true;
  }

  /** The ledger with what is said in a batch; of wishes that the base takes for one, the clearest covers the others. */
  private async lessonsWith(end: ChainEnd, decision: TrainDecision, signal: AbortSignal): Promise<Lesson[]> {
    const { recipe, effects, events, plan, relations } = this.tools;
    const wishes = wishesOf(decision);
    const texts = wishes.map(({ text }) => text);
    const relate = await relations.among(newWishes(end.state.lessons, wishes, recipe.lessonScope), signal);
    const questions = await this.questions(askedTurns(end.state.lessons, wishes, recipe.lessonScope, relate));
    const change = { batch: end.chain.nextNumber(), relate, questions };
    const lessons = withWishes(end.state.lessons, wishes, recipe.lessonScope, change);
    if (recipe.method === 'binary') return lessons;
    const asked = decodePlan(plan.bytes);
    try {
      const groups = compared(lessons, texts);
      const words = groups.map((group) => ({
        words: group.map(({ text }) => text),
        inForce: group.filter(isInForce).map(({ text }) => text),
      }));
      const measured = asked === undefined ? undefined : await effects.among(words, asked, signal);
      if (measured === undefined) return settledCovers(lessons);
      const cases = groups.flatMap((group) => group.filter(isHeard).flatMap(({ cases }) => cases));
      const again = recurring(groups, measured, relate, { questions: await this.questions(cases), heard: texts });
      const taken = again.reduce((ledger, lesson) => takenUp(ledger, { ...lesson, cameBack: true }, change), lessons);
      return withCovers(taken, compared(taken, texts), measured, relate);
    } catch (thrown) {
      signal.throwIfAborted();
      // What each says is taught all the same.
      events.wishesNotCompared(this.state.policy, asBacktalkError(thrown));
    }
    return settledCovers(lessons);
  }

  private async questions(cases: readonly LessonCase[]): Promise<Questions> {
    const wanted = [...new Map(cases.map((one) => [one.turn, one])).values()];
    const asked = await Promise.all(wanted.map((one) => this.tools.turns.question(one)));
    return new Map(wanted.flatMap(({ turn }, index) => [[turn, asked[index] ?? '']]));
  }

  /** Those that fit one step; the others wait for the next batch. Nothing when some are too large for any, or lost: it is decided anew. */
  private async fitting(decision: TrainDecision): Promise<TrainDecision | undefined> {
    const { pending } = this.state;
    let room = batchBytesMax;
    let isComplete = true;
    const fit = async (wanted: readonly Weighed[]): Promise<Weighed[]> => {
      const taken: Weighed[] = [];
      for (const weighed of wanted) {
        const { candidate } = weighed;
        const bytes = candidate.bytes ?? (await this.tools.turns.bytes(candidate));
        const isSound = typeof bytes === 'number';
        pending.learn(candidate.turn, isSound ? { bytes } : { reason: bytes });
        isComplete &&= isSound;
        if (!isSound || bytes > room) continue;
        room -= bytes;
        taken.push(weighed);
      }
      return taken;
    };
    const effective = await fit(decision.effective);
    const anchors = await fit(decision.anchors);
    return isComplete ? { ...decision, effective, anchors } : undefined;
  }

  /** The batch's step will never be taken: its samples are settled by name, and learning goes on without them. */
  async giveUp(ledger: LedgerState, batch: BatchClosed, reason: GivingUp, detail: string): Promise<void> {
    const { repeats, first } = batch;
    const fact = settlingBatch(this.chainEnd(ledger), givenUp(batch, reason), reason, detail);
    await this.close(ledger, { ...fact, repeats, first });
  }

  /** False when some of its turns are in an earlier batch: they wait no longer, and it is decided anew. */
  private async closeMarked(ledger: LedgerState, batch: BatchClosed, traces: readonly Trace[] = []): Promise<boolean> {
    const taken = await this.ledger.claim(ledger, batch);
    if (taken.length === 0) {
      await this.close(ledger, batch, traces);
      return true;
    }
    this.state.unconfirmed.push(...this.state.pending.take(taken));
    await this.confirm();
    return false;
  }

  private chainEnd({ chain, line }: LedgerState): ChainEnd {
    return { policy: this.state.policy, chain, state: carriedState(chain, line, this.tools.recipe) };
  }

  private async close(ledger: LedgerState, batch: BatchClosed, traces: readonly Trace[] = []): Promise<void> {
    const { state } = this;
    await this.ledger.close(ledger, batch, traces);
    this.tools.events.batchClosed(batch);
    state.unconfirmed.push(...state.pending.take(turnsOf(batch)));
    await this.confirm();
  }

  /** An ack that was not confirmed is tried again: otherwise the message would be kept alive without end. */
  async confirm(): Promise<void> {
    const { state } = this;
    const waiting = state.unconfirmed;
    state.unconfirmed = [];
    for (let start = 0; start < waiting.length; start += acksAtOnce) {
      const group = waiting.slice(start, start + acksAtOnce);
      const acked = await Promise.all(
        group.map(async (held) => {
          try {
            await held.ack();
            return true;
          } catch (error) {
            // Given back already: the process that gets it next finds the turn settled.
            return isBacktalkError(error, 'facts_stopped');
          }
        }),
      );
      state.unconfirmed.push(...group.filter((_, index) => acked[index] === false));
    }
  }
}
