// What a version's answers show of each lesson, asked of an engine that serves it: the version answers a few of a lesson's turns, shown
// nothing, and the base says how much likelier it finds each answer when it is shown the person's lessons than when it is shown all but this one.
// What it says of its own answers, shown all of them, and shown another wish in this one's place, tells where the way ends and where it begins.
import type { CompletionChoice, EngineClient, ScoreItem } from '@backtalk/dialects';
import {
  asBacktalkError,
  clip,
  hintedMessages,
  templateTokenIn,
  type BacktalkError,
  type Clock,
  type Speaker,
  type TurnIds,
} from '@backtalk/kit';
import type { ComparedAnswer } from '@backtalk/proto/facts';

import { effectMinNats, lessonTurnsMax, type LessonToMeasure, type Measured } from '../domain/lesson-progress.js';
import { measuringQuestions } from '../domain/rehearsal-questions.js';
import { questionIn, type SampleSource } from '../domain/train-request.js';
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
/** Of a question and each of its answers, for people to read. */
const readCharacters = 400;
const callDeadlineMs = 30_000;
/** After this no further lesson is begun: those that are left come first with the next version. */
const withinMs = 45_000;

type Ids = readonly number[];
type Answer = Pick<CompletionChoice, 'ids' | 'text' | 'finishReason'>;

const nothing: Answer = { ids: [], text: '', finishReason: '' };

type Asked = Pick<SampleSource, 'messages' | 'tools' | 'templateArguments'> &
  Partial<Pick<SampleSource, 'humanMessage'>>;

type Wishes = readonly string[];
type Sums = Omit<Found, 'questions' | 'hidden' | 'askedAgain'>;

/** A turn's request, with what it gave so far. */
interface Question {
  /** Nothing where it is the trainer's own. */
  readonly speaker: Speaker | undefined;
  readonly shown: (wishes: Wishes) => Promise<Ids>;
  /** What was asked, in the person's own words, and what was answered then; nothing where it is the trainer's own. */
  readonly said: (Pick<ComparedAnswer, 'question' | 'before'> & { readonly turn: string }) | undefined;
  /** What the version answers, shown nothing. */
  own?: Answer;
}

interface AskedLesson {
  readonly questions: readonly Question[];
  /** Each question with what teachers are shown, with all of that but this lesson, and with another wish in its place. */
  readonly told: readonly Ids[];
  readonly untold: readonly Ids[];
  readonly other: readonly Ids[];
  /** Whether any of them is shown others beside it. */
  readonly isBeside: boolean;
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
      for (const lesson of lessons) {
        if (this.clock.now() >= endsMs) break;
        try {
          const measured = await asking.measure(lesson);
          if (measured !== undefined) found.set(lesson.id, measured);
        } catch (error) {
          stopped.throwIfAborted();
          // One that no engine can be asked about keeps no other from being asked.
          failed = asBacktalkError(error);
        }
      }
      if (found.size === 0 && failed !== undefined) throw failed;
    };
    await this.engines.use(base, wanted, ask, version);
    return found;
  }
}

const hasEffect = ({ told, chance }: Sums) => told - chance >= effectMinNats;

/** Words that quote the template's own tokens are shown to no model. */
const isPlain = (text: string) => templateTokenIn(text) === undefined;

type Found = NonNullable<ReturnType<Measured['get']>>;

const ofTrainer = { speaker: undefined, said: undefined };

function askedAgain({ corrected }: LessonToMeasure, questions: readonly Question[]): ComparedAnswer[] {
  const told = questions.flatMap(({ said, own }) => {
    if (said === undefined || own === undefined || !corrected.has(said.turn)) return [];
    const cut = (text: string) => clip(text.trim(), readCharacters);
    const more = own.finishReason === 'length' ? ' …' : '';
    return [{ question: cut(said.question), before: cut(said.before), after: `${cut(own.text)}${more}` }];
  });
  return told.slice(0, ownTurns);
}

class Asking {
  private readonly questions = new Map<string, Question | undefined>();

  constructor(
    private readonly engine: EngineClient,
    private readonly turns: Pick<SourceLog, 'source'>,
    private readonly models: { readonly base: string; readonly version: string },
    private readonly options: MeasureOptions,
    private readonly stopped: AbortSignal,
  ) {}

  /** A lesson that the others leave nothing of is measured alone. */
  async measure(lesson: LessonToMeasure): Promise<Found | undefined> {
    const { questions, own } = await this.questionsOf(lesson);
    if (questions.length === 0) return undefined;
    const asked = await this.shownTo(lesson, questions);
    const sums = await this.measured(asked);
    const beside = { ...sums, questions: own, hidden: false, askedAgain: askedAgain(lesson, questions) };
    if (!asked.isBeside || hasEffect(beside)) return beside;
    const shown = () => ({ told: [lesson.text], untold: [] });
    const alone = await this.measured(await this.shownTo({ ...lesson, shown }, questions));
    return { ...beside, ...alone, hidden: hasEffect(alone) };
  }

  private async shownTo(lesson: LessonToMeasure, questions: readonly Question[]): Promise<AskedLesson> {
    const [told, untold, other]: [Ids[], Ids[], Ids[]] = [[], [], []];
    let isBeside = false;
    for (const [at, question] of questions.entries()) {
      const shown = lesson.shown(question.speaker);
      const instead = otherWishes[at % otherWishes.length] ?? '';
      told.push(await question.shown(shown.told));
      untold.push(await question.shown(shown.untold));
      other.push(await question.shown(shown.told.map((text) => (text === lesson.text ? instead : text))));
      isBeside ||= shown.untold.length > 0;
    }
    return { questions, told, untold, other, isBeside };
  }

  /** And how many of them are the trainer's own. */
  private async questionsOf({
    text,
    turns,
    fills,
  }: LessonToMeasure): Promise<{ readonly questions: readonly Question[]; readonly own: number }> {
    const questions: Question[] = [];
    if (!isPlain(text)) return { questions, own: 0 };
    // Some of its own, then those that other lessons were asked on: their answers are there.
    const [corrected, others] = [turns.slice(0, ownTurns), turns.slice(ownTurns)];
    const isNew = ({ turn }: TurnIds) => Number(!this.questions.has(turn));
    for (const ids of [...corrected, ...others.toSorted((a, b) => isNew(a) - isNew(b))]) {
      const question = await this.question(ids);
      if (question !== undefined) questions.push(question);
      if (questions.length === lessonTurnsMax) break;
    }
    const own = fills ? await this.ownQuestions(lessonTurnsMax - questions.length) : [];
    return { questions: [...questions, ...own], own: own.length };
  }

  private async ownQuestions(count: number): Promise<Question[]> {
    const found: Question[] = [];
    for (let at = 0; at < count; at += 1) {
      const place = (this.options.batch * lessonTurnsMax + at) % measuringQuestions.length;
      const content = measuringQuestions[place] ?? '';
      const messages = [{ role: 'user', content }];
      const question =
        this.questions.get(content) ?? (await this.asked(ofTrainer, { messages, tools: [], templateArguments: {} }));
      this.questions.set(content, question);
      found.push(question);
    }
    return found;
  }

  private async measured(asked: AskedLesson): Promise<Sums> {
    const { questions, told, untold, other } = asked;
    await this.answer(questions.filter(({ own }) => own === undefined));
    const ofBase = await this.answers(this.models.base, [...other, ...told]);
    const items = questions.flatMap(({ own }, at) => {
      const all = [ofBase[at]?.ids ?? [], ofBase[questions.length + at]?.ids ?? [], own?.ids ?? []];
      return [untold[at] ?? [], told[at] ?? []].flatMap((promptIds) =>
        all.map((answerIds): ScoreItem => ({ promptIds, answerIds })),
      );
    });
    const scores = await this.engine.score(items, { model: this.models.base, ...this.calling() });
    const sums = scores.map((logprobs) => logprobs.reduce((sum, logprob) => sum + logprob, 0));
    return summed(questions.map((_, at) => gainsOf(sums.slice(6 * at, 6 * at + 6))));
  }

  /** Of the version, shown nothing: whichever lesson asks first. */
  private async answer(questions: readonly Question[]): Promise<void> {
    if (questions.length === 0) return;
    const plain: Ids[] = [];
    for (const question of questions) plain.push(await question.shown([]));
    const answers = await this.answers(this.models.version, plain);
    for (const [at, question] of questions.entries()) question.own = answers[at] ?? nothing;
  }

  private answers(model: string, prompt: readonly Ids[]): Promise<readonly Answer[]> {
    const maxTokens = Math.min(this.options.answerTokensMax, answerTokensCap);
    return this.engine.completions({ model, prompt, maxTokens, temperature }, this.calling());
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
    const { turn, tenant, user } = ids;
    const said = { turn, question: questionIn(source), before: facts.completed?.text ?? '' };
    const own = { speaker: { tenant, user }, said };
    return this.asked(own, source, facts.completed?.shown === undefined ? captured : undefined);
  }

  /** @param captured ids of the request as it was sent, where they are known */
  private async asked(
    { speaker, said }: Pick<Question, 'speaker' | 'said'>,
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
    const shown = async (wishes: Wishes): Promise<Ids> => {
      const hints = wishes.filter(isPlain);
      if (hints.length === 0) return plain;
      return rendered(hintedMessages(messages, hints, this.options.hintPlace, humanMessage) ?? messages);
    };
    return { speaker, said, shown };
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
