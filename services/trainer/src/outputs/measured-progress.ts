// What a version's answers show of each lesson, asked of an engine that serves it: the version answers a few of a lesson's turns, shown
// nothing, and the base says how much likelier it finds each answer when it is shown the person's lessons than when it is shown all but this one.
// What it says of its own answers, shown all of them, and shown another wish in this one's place, tells where the way ends and where it begins.
import type { EngineClient, ScoreItem } from '@backtalk/dialects';
import {
  asBacktalkError,
  hintedMessages,
  templateTokenIn,
  type BacktalkError,
  type Clock,
  type TurnIds,
} from '@backtalk/kit';

import { effectMinNats, lessonTurnsMax, type LessonToMeasure, type Measured } from '../domain/lesson-progress.js';
import { measuringQuestions } from '../domain/rehearsal-questions.js';
import type { SampleSource } from '../domain/train-request.js';
import { otherWishes } from './measured-effects.js';
import type { ServingEngine, ServingEngines } from './serving-engines.js';
import type { SourceLog } from './source-log.js';

export interface MeasureOptions {
  readonly policy: string;
  readonly hintPlace: string;
  /** What is trained on of an answer is what is looked at. */
  readonly answerTokensMax: number;
  /** That made the version: other versions are asked other questions. */
  readonly batch: number;
}

/** A turn is answered three times and its answers are scored: what is longer would cost more than all others. */
const promptTokensMax = 2_048;
const answerTokensCap = 128;
const temperature = 0.8;
const ownTurns = lessonTurnsMax / 2;
const callDeadlineMs = 30_000;
/** Lessons that are answered together: few enough that a person's answer waits no longer than for one. */
const answeredTogether = 4;
/** After this no further lesson is scored: those that are left come first with the next version. */
const withinMs = 45_000;

type Ids = readonly number[];

type Asked = Pick<SampleSource, 'messages' | 'tools' | 'templateArguments'> &
  Partial<Pick<SampleSource, 'humanMessage'>>;

type Wishes = readonly string[];
type Sums = Omit<Found, 'questions' | 'hidden'>;

/** A turn's request, with what it gave so far. */
interface Question {
  readonly shown: (wishes: Wishes) => Promise<Ids>;
  /** What the version answers, shown nothing. */
  own?: Ids;
}

interface AskedLesson {
  readonly lesson: LessonToMeasure;
  readonly questions: readonly Question[];
  /** How many of them are the trainer's own. */
  readonly own: number;
  /** Each question with the person's lessons shown, and with all but this one. */
  readonly told: readonly Ids[];
  readonly untold: readonly Ids[];
}

/** What the base answers to the turns of a lesson. */
interface Answers {
  /** Shown all lessons. */
  readonly told: readonly Ids[];
  /** Shown a wish for something else in this one's place. */
  readonly chance: readonly Ids[];
}

export class MeasuredProgress {
  constructor(
    private readonly engines: Pick<ServingEngines, 'base' | 'use'>,
    private readonly turns: Pick<SourceLog, 'source'>,
    private readonly clock: Clock,
  ) {}

  /** Out: of the lessons that could be asked in time. Nothing where no engine gives scores. */
  async of(
    version: string,
    lessons: readonly LessonToMeasure[],
    options: MeasureOptions,
    stopped: AbortSignal,
  ): Promise<Measured> {
    const found = new Map<string, Found>();
    const wanted = ['tokenize', 'prompt_logprobs'] as const;
    const base = this.engines.base(...wanted);
    if (base === undefined) return found;
    const endsMs = this.clock.now() + withinMs;
    const ask = async ([engine]: readonly ServingEngine[]): Promise<void> => {
      if (engine === undefined) return;
      const asking = new Asking(engine.client, this.turns, { base, version }, options, stopped);
      let failed: BacktalkError | undefined;
      const waiting = inGroups(lessons);
      for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) {
        if (this.clock.now() >= endsMs) break;
        try {
          for await (const [id, measured] of asking.measure(group)) {
            found.set(id, measured);
            if (this.clock.now() >= endsMs) break;
          }
        } catch (error) {
          stopped.throwIfAborted();
          // One that no engine can be asked about keeps no other from being asked.
          if (group.length === 1) failed = asBacktalkError(error);
          else waiting.unshift(...group.filter(({ id }) => !found.has(id)).map((lesson) => [lesson]));
        }
      }
      if (found.size === 0 && failed !== undefined) throw failed;
    };
    await this.engines.use(base, wanted, ask, version);
    return found;
  }
}

/** Words that quote the template's own tokens are shown to no model. */
const isPlain = (text: string) => templateTokenIn(text) === undefined;

function inGroups(lessons: readonly LessonToMeasure[]): (readonly LessonToMeasure[])[] {
  const count = Math.ceil(lessons.length / answeredTogether);
  return Array.from({ length: count }, (_, at) => lessons.slice(at * answeredTogether, (at + 1) * answeredTogether));
}

type Found = NonNullable<ReturnType<Measured['get']>>;

class Asking {
  private readonly questions = new Map<string, Question | undefined>();

  constructor(
    private readonly engine: EngineClient,
    private readonly turns: Pick<SourceLog, 'source'>,
    private readonly models: { readonly base: string; readonly version: string },
    private readonly options: MeasureOptions,
    private readonly stopped: AbortSignal,
  ) {}

  /** A lesson that other lessons of its person leave nothing of is measured alone. */
  async *measure(lessons: readonly LessonToMeasure[]): AsyncGenerator<readonly [lesson: string, Found]> {
    const again: LessonToMeasure[] = [];
    for await (const [lesson, found] of this.together(lessons)) {
      const isHidden = lesson.untold.length > 0 && found.told - found.chance < effectMinNats;
      if (isHidden) again.push({ ...lesson, told: [lesson.text], untold: [] });
      else yield [lesson.id, found];
    }
    for await (const [{ id }, found] of this.together(again)) yield [id, { ...found, hidden: true }];
  }

  /** They are answered together: a token of many answers takes hardly longer than a token of one. */
  private async *together(
    lessons: readonly LessonToMeasure[],
  ): AsyncGenerator<readonly [lesson: LessonToMeasure, Found]> {
    const asked: AskedLesson[] = [];
    for (const lesson of lessons) {
      const { all, own } = await this.questionsOf(lesson);
      const [told, untold]: [Ids[], Ids[]] = [[], []];
      for (const question of all) {
        told.push(await question.shown(lesson.told.filter(isPlain)));
        untold.push(await question.shown(lesson.untold.filter(isPlain)));
      }
      if (all.length > 0) asked.push({ lesson, questions: all, own, told, untold });
    }
    const answers = await this.answer(asked);
    for (const [at, of] of asked.entries())
      yield [
        of.lesson,
        { ...(await this.scored(of, answers[at] ?? { told: [], chance: [] })), questions: of.own, hidden: false },
      ];
  }

  private async questionsOf({ text, turns, fills }: LessonToMeasure): Promise<{ all: Question[]; own: number }> {
    const questions: Question[] = [];
    if (!isPlain(text)) return { all: questions, own: 0 };
    // Some of its own, then those that other lessons were asked on: their answers are there.
    const [corrected, others] = [turns.slice(0, ownTurns), turns.slice(ownTurns)];
    const isNew = ({ turn }: TurnIds) => Number(!this.questions.has(turn));
    for (const ids of [...corrected, ...others.toSorted((a, b) => isNew(a) - isNew(b))]) {
      const question = await this.question(ids);
      if (question !== undefined) questions.push(question);
      if (questions.length === lessonTurnsMax) break;
    }
    const own = fills ? await this.ownQuestions(lessonTurnsMax - questions.length) : [];
    return { all: [...questions, ...own], own: own.length };
  }

  private async ownQuestions(count: number): Promise<Question[]> {
    const found: Question[] = [];
    for (let at = 0; at < count; at += 1) {
      const place = (this.options.batch * lessonTurnsMax + at) % measuringQuestions.length;
      const content = measuringQuestions[place] ?? '';
      const messages = [{ role: 'user', content }];
      const question =
        this.questions.get(content) ?? (await this.asked({ messages, tools: [], templateArguments: {} }));
      this.questions.set(content, question);
      found.push(question);
    }
    return found;
  }

  private async scored({ questions, told, untold }: AskedLesson, base: Answers): Promise<Sums> {
    const items = questions.flatMap(({ own = [] }, at) => {
      const all = [base.chance[at] ?? [], base.told[at] ?? [], own];
      return [untold[at] ?? [], told[at] ?? []].flatMap((promptIds) =>
        all.map((answerIds): ScoreItem => ({ promptIds, answerIds })),
      );
    });
    const scores = await this.engine.score(items, { model: this.models.base, ...this.calling() });
    const sums = scores.map((logprobs) => logprobs.reduce((sum, logprob) => sum + logprob, 0));
    return summed(questions.map((_, at) => gainsOf(sums.slice(6 * at, 6 * at + 6))));
  }

  /** Out: what the base answers. What the version answers is kept with each question. */
  private async answer(lessons: readonly AskedLesson[]): Promise<Answers[]> {
    const open = [...new Set(lessons.flatMap(({ questions }) => questions))].filter(({ own }) => own === undefined);
    const plain: Ids[] = [];
    for (const question of open) plain.push(await question.shown([]));
    for (const [at, own] of (await this.answers(this.models.version, plain)).entries())
      if (open[at] !== undefined) open[at].own = own;
    const prompts: Ids[] = [];
    for (const { lesson, questions, told } of lessons) {
      for (const [at, question] of questions.entries())
        prompts.push(
          await question.shown([...lesson.untold.filter(isPlain), otherWishes[at % otherWishes.length] ?? '']),
        );
      prompts.push(...told);
    }
    const ofBase = await this.answers(this.models.base, prompts);
    let from = 0;
    const next = (count: number) => ofBase.slice(from, (from += count));
    return lessons.map(({ questions }) => ({ chance: next(questions.length), told: next(questions.length) }));
  }

  private async answers(model: string, prompt: readonly Ids[]): Promise<Ids[]> {
    if (prompt.length === 0) return [];
    const maxTokens = Math.min(this.options.answerTokensMax, answerTokensCap);
    const choices = await this.engine.completions({ model, prompt, maxTokens, temperature }, this.calling());
    return choices.map(({ ids }) => ids);
  }

  /** Nothing where the turn is gone, of another policy, not to be learned from, or too long. */
  private async question(ids: TurnIds): Promise<Question | undefined> {
    if (this.questions.has(ids.turn)) return this.questions.get(ids.turn);
    const question = await this.read(ids);
    this.questions.set(ids.turn, question);
    return question;
  }

  private async read(ids: TurnIds): Promise<Question | undefined> {
    const source = await this.turns.source(ids);
    if (typeof source === 'string') return undefined;
    const { facts } = source;
    const captured = facts.completed?.promptIds ?? [];
    const mayBeAsked = facts.opened?.policy === this.options.policy && facts.opened.consent?.train === true;
    if (!mayBeAsked || captured.length === 0 || captured.length > promptTokensMax) return undefined;
    return this.asked(source, facts.completed?.shown === undefined ? captured : undefined);
  }

  /** @param captured ids of the request as it was sent, where they are known */
  private async asked(
    { messages, tools, templateArguments, humanMessage = -1 }: Asked,
    captured?: Ids,
  ): Promise<Question> {
    const rendered = (given: readonly unknown[]): Promise<Ids> => {
      const request = {
        model: this.models.base,
        messages: given,
        ...(tools.length === 0 ? {} : { tools }),
        ...(Object.keys(templateArguments).length === 0 ? {} : { templateArguments }),
      };
      return this.engine.tokenize(request, this.calling());
    };
    const plain = captured ?? (await rendered(messages));
    const shown = async (wishes: Wishes): Promise<Ids> =>
      wishes.length === 0
        ? plain
        : rendered(hintedMessages(messages, wishes, this.options.hintPlace, humanMessage) ?? messages);
    return { shown };
  }

  private calling() {
    return { deadlineMs: callDeadlineMs, signal: this.stopped };
  }
}

/** Of one turn's answers: how much likelier each is to the base that is shown the lesson, too, than to the base that is not. */
interface Gains {
  readonly chance: number;
  readonly told: number;
  readonly own: number;
}

function gainsOf([
  chance = 0,
  told = 0,
  own = 0,
  chanceShown = 0,
  toldShown = 0,
  ownShown = 0,
]: readonly number[]): Gains {
  return { chance: chanceShown - chance, told: toldShown - told, own: ownShown - own };
}

/**
 * Each answer counts from what other wishes' answers come to in the mean, up to what told answers do. One that another lesson has made unlike
 * both says nothing for this one, and one that overdoes it says no more than one that obeys.
 */
function summed(gains: readonly Gains[]): Sums {
  const least = meanOf(gains.map(({ chance }) => chance));
  const most = Math.max(least, meanOf(gains.map(({ told }) => told)));
  const mean = (of: (gain: Gains) => number) => meanOf(gains.map((gain) => Math.min(most, Math.max(least, of(gain)))));
  return {
    turns: gains.length,
    chance: mean(({ chance }) => chance),
    told: mean(({ told }) => told),
    own: mean(({ own }) => own),
  };
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
