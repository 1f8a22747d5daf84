// What wishes do to the base model, asked of the engines that serve it: the base answers a few questions with each wish shown, and each answer
// is scored with every other wish shown; how much a wish does at all is asked of sampled answers. What is known is kept, so that a new wish
// costs its own answers and scores only.
import type { EngineClient, ScoreItem } from '@backtalk/dialects';
import { hintedMessages } from '@backtalk/kit';

import type { WishEffects } from '../domain/lesson-cover.js';
import type { StepPlan } from '../domain/step-plan.js';
import type { ServingEngines } from './serving-engines.js';

/** Ask for other things than most: what these do to an answer is what any sentence more does. */
export const otherWishes: readonly string[] = [
  'Answer in French.',
  'Give an example from history.',
  'Use at most five words.',
  'Write it as a poem.',
];
/** Each wish's answer to these is scored with every other wish shown. */
const comparedQuestions = 2;
/** Sampled answers to these say how much a wish does: one greedy answer says what it leads to, and not how often. */
const effectQuestions = 4;
const effectSeeds = [1, 2];
const effectTemperature = 0.8;
const answerTokensMax = 24;
const answeredTogether = 4;
const callDeadlineMs = 30_000;
/** Of all that is asked about a batch: it waits no longer. */
const withinMs = 120_000;
const wishesMax = 2_048;

type Ids = readonly number[];

/** What one person said. */
export interface ComparedWishes {
  readonly words: readonly string[];
  /** Of these, the words of lessons in force: what they do is asked of sampled answers as well, since one of them is shown. */
  readonly inForce: readonly string[];
}

export class MeasuredEffects {
  private known = new Known('');

  constructor(private readonly engines: Pick<ServingEngines, 'base' | 'use'>) {}

  /** @param groups wishes that are compared with each other; nothing where no engine gives scores */
  async among(
    groups: readonly ComparedWishes[],
    { probePrompts, training: { hintPlace } }: StepPlan,
    stopped: AbortSignal,
  ): Promise<WishEffects | undefined> {
    const base = this.engines.base('tokenize', 'prompt_logprobs');
    if (base === undefined) return undefined;
    if (this.known.base !== base || this.known.size + groups.flatMap(({ words }) => words).length > wishesMax)
      this.known = new Known(base);
    const { known } = this;
    const questions = probePrompts.slice(0, effectQuestions).map(messagesOf);
    const signal = AbortSignal.any([stopped, AbortSignal.timeout(withinMs)]);
    if (groups.length === 0) return known;
    await this.engines.use(base, ['tokenize', 'prompt_logprobs'], async ([engine]) => {
      if (engine === undefined) return;
      const asking = new Asking(engine.client, base, { questions, hintPlace, signal }, known);
      for (const { words: wishes, inForce } of groups) {
        await asking.answer(wishes);
        for (const shown of ['', ...otherWishes, ...wishes]) await asking.score(shown, wishes);
        await asking.scoreAfterOthers(wishes);
        if (inForce.length > 1) await asking.sampleEffects(inForce);
      }
    });
    return known;
  }
}

/** Of one base; by wish. The empty wish is none. */
class Known implements WishEffects {
  readonly answers = new Map<string, readonly Ids[]>();
  /** Of a wish's answers, after questions that they are no answers to. */
  readonly afterOthers = new Map<string, number>();
  readonly effects = new Map<string, number>();
  private readonly scores = new Map<string, number>();

  constructor(readonly base: string) {}

  get size(): number {
    return this.answers.size;
  }

  has(shown: string, told: string): boolean {
    return this.scores.has(key(shown, told));
  }

  keep(shown: string, told: string, nats: number): void {
    this.scores.set(key(shown, told), nats);
  }

  gain(shown: string, told: string): number | undefined {
    const [with_, without] = [this.scores.get(key(shown, told)), this.scores.get(key('', told))];
    return with_ === undefined || without === undefined ? undefined : with_ - without;
  }

  effect(told: string): number | undefined {
    return this.effects.get(told);
  }

  matter(told: string): number | undefined {
    const [own, others] = [this.scores.get(key('', told)), this.afterOthers.get(told)];
    return own === undefined || others === undefined ? undefined : own - others;
  }

  byChance(told: string): number | undefined {
    const gains = otherWishes.map((other) => this.gain(other, told));
    const all = gains.filter((gain) => gain !== undefined);
    return all.length < gains.length ? undefined : all.reduce((sum, gain) => sum + gain, 0) / all.length;
  }
}

interface Asked {
  readonly questions: readonly (readonly unknown[])[];
  readonly hintPlace: string;
  readonly signal: AbortSignal;
}

/** One engine, asked one thing after the other, so that people's answers find room between. */
class Asking {
  private readonly prompts = new Map<string, readonly Ids[]>();

  constructor(
    private readonly engine: EngineClient,
    private readonly model: string,
    private readonly asked: Asked,
    private readonly known: Known,
  ) {}

  /** Several wishes at once: a token of many answers takes hardly longer than a token of one. */
  async answer(wishes: readonly string[]): Promise<void> {
    const { known } = this;
    const open = wishes.filter((wish) => !known.answers.has(wish));
    for (let from = 0; from < open.length; from += answeredTogether) {
      const some = open.slice(from, from + answeredTogether);
      const prompts: Ids[] = [];
      for (const wish of some) prompts.push(...(await this.comparedPrompts(wish)));
      const answers = await this.answersTo(prompts, { temperature: 0 });
      const each = prompts.length / some.length;
      for (const [index, wish] of some.entries())
        known.answers.set(wish, answers.slice(index * each, (index + 1) * each));
    }
  }

  async score(shown: string, wishes: readonly string[]): Promise<void> {
    const { known } = this;
    const open = wishes.filter((told) => !known.has(shown, told));
    if (open.length === 0) return;
    const scores = await this.scoresOf(await this.comparedPrompts(shown), open);
    for (const [index, told] of open.entries()) known.keep(shown, told, scores[index] ?? 0);
  }

  /** Each answer after the next question, where there are several. */
  async scoreAfterOthers(wishes: readonly string[]): Promise<void> {
    const { afterOthers } = this.known;
    const open = wishes.filter((told) => !afterOthers.has(told));
    const [first, ...rest] = await this.comparedPrompts('');
    if (open.length === 0 || first === undefined || rest.length === 0) return;
    const scores = await this.scoresOf([...rest, first], open);
    for (const [index, told] of open.entries()) afterOthers.set(told, scores[index] ?? 0);
  }

  /** Of each wish, how much likelier being shown it makes what the base samples then: an estimate of a KL, nats an answer. */
  async sampleEffects(wishes: readonly string[]): Promise<void> {
    const { engine, model, known } = this;
    const plain = await this.promptsWith('');
    for (const wish of wishes.filter((open) => !known.effects.has(open))) {
      const shown = await this.promptsWith(wish);
      const answers: Ids[] = [];
      // One seed gives the same prompt the same answer.
      for (const seed of effectSeeds)
        answers.push(...(await this.answersTo(shown, { temperature: effectTemperature, seed })));
      const after = (asked: readonly Ids[]) =>
        answers.map((answerIds, at): ScoreItem => ({ promptIds: asked[at % asked.length] ?? [], answerIds }));
      const scored = await engine.score([...after(shown), ...after(plain)], { model, ...this.options() });
      const sums = scored.map(sumOf);
      known.effects.set(
        wish,
        (sumOf(sums.slice(0, answers.length)) - sumOf(sums.slice(answers.length))) / answers.length,
      );
    }
  }

  private async answersTo(
    prompt: readonly Ids[],
    sampling: { readonly temperature: number; readonly seed?: number },
  ): Promise<Ids[]> {
    const request = { model: this.model, prompt, maxTokens: answerTokensMax, ...sampling };
    return (await this.engine.completions(request, this.options())).map(({ ids }) => ids);
  }

  private async comparedPrompts(wish: string): Promise<readonly Ids[]> {
    return (await this.promptsWith(wish)).slice(0, comparedQuestions);
  }

  /** Of each wish, the mean over the questions of how likely its answer is after that question's prompt. */
  private async scoresOf(prompts: readonly Ids[], wishes: readonly string[]): Promise<number[]> {
    const { model, known } = this;
    // Question by question, so that answers to one follow each other: their prompt is computed once.
    const items = prompts.flatMap((promptIds, question) =>
      wishes.map((told): ScoreItem => ({ promptIds, answerIds: known.answers.get(told)?.[question] ?? [] })),
    );
    const logprobs = await this.engine.score(items, { model, ...this.options() });
    const sums = logprobs.map(sumOf);
    return wishes.map((_, index) => {
      const own = prompts.map((_prompt, question) => sums[question * wishes.length + index] ?? 0);
      return own.reduce((sum, nats) => sum + nats, 0) / Math.max(1, own.length);
    });
  }

  private async promptsWith(wish: string): Promise<readonly Ids[]> {
    const { asked, engine, model } = this;
    const before = this.prompts.get(wish);
    if (before !== undefined) return before;
    const prompts: Ids[] = [];
    for (const question of asked.questions) {
      const messages = wish === '' ? question : (hintedMessages(question, [wish], asked.hintPlace, -1) ?? question);
      prompts.push(await engine.tokenize({ model, messages }, this.options()));
    }
    this.prompts.set(wish, prompts);
    return prompts;
  }

  private options() {
    return { deadlineMs: callDeadlineMs, signal: this.asked.signal };
  }
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function messagesOf(prompt: Uint8Array): readonly unknown[] {
  const messages: unknown = JSON.parse(new TextDecoder().decode(prompt));
  return Array.isArray(messages) ? messages : [];
}

function key(shown: string, told: string): string {
  return `${shown}\u0000${told}`;
}
