// Has versions answer the probe questions on an engine, and scores their answers under the base model.
//
// In: an engine and versions that it holds. Out: the fault of each answer. A version's answers are asked for once, since its
// weights never change: each decision asks the candidate alone, since what serves was a candidate before it, or was asked ahead.
// Never longer than its deadline, and never more than a few requests at once: people are being answered beside it.
import { engineErrors, type Capture, type EngineClient } from '@backtalk/dialects';
import type { Clock } from '@backtalk/kit';
import {
  faultOfText,
  faultOfTopic,
  otherQuestions,
  probeQuestions,
  type AnswerFault,
  type Faults,
} from '../domain/behaviour.js';
import { sum } from '../domain/means.js';
import type { LeasedEngine } from './loaders.js';
import { callUntil, clientFor } from './probe-scores.js';

export interface BehaviourLimits {
  /** Questions that are asked; 0: none. */
  readonly probes: number;
  /** Most tokens of an answer. */
  readonly tokens: number;
  readonly deadlineMs: number;
}

const atOnce = 4;
const temperature = 0.8;

/** What a version answered, as the gate sees it. */
interface Answers {
  readonly faults: Faults;
  /** For people to read: one that was cut off says so. */
  readonly texts: readonly string[];
  /** Mean −log p of the sampled tokens, nats a token; undefined where the engine gives no logprobs. */
  readonly entropy: number | undefined;
  /** Geometric mean of the answers' tokens. */
  readonly tokens: number;
}

interface Answered {
  readonly text: string;
  readonly promptIds: readonly number[];
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  readonly fault: AnswerFault | undefined;
}

interface Asking {
  readonly client: EngineClient;
  readonly base: string;
  readonly endsMs: number;
}

/** By engine's base and version; one that is being asked is here already. */
export type KnownAnswers = Map<string, Promise<Answers>>;

export class BehaviourProbes {
  private readonly stopping = new AbortController();
  private readonly ofVersions: KnownAnswers = new Map();

  /** @param ofBases what bases answered, for all policies: each of them is compared with its base */
  constructor(
    private readonly apiKey: string,
    private readonly limits: BehaviourLimits,
    private readonly clock: Clock,
    private readonly ofBases: KnownAnswers,
  ) {}

  /** Whether an engine says exactly enough of its answers; one that does not say what it can is asked. */
  canAsk({ engine: { capabilities } }: LeasedEngine): boolean {
    return this.limits.probes > 0 && (capabilities.length === 0 || capabilities.includes('token_ids'));
  }

  /**
   * @param models the engine's names of versions; the base is the engine's own
   * @returns what each of them answered, in their order
   */
  async answersOf(leased: LeasedEngine, models: readonly string[]): Promise<Answers[]> {
    const wanted = new Set(models.map((model) => nameOf(leased, model)));
    for (const name of this.ofVersions.keys()) if (!wanted.has(name)) this.ofVersions.delete(name);
    return this.asked(leased, models);
  }

  /** Asks those whose answers are not known, so that the next decision need not. */
  async askAhead(leased: LeasedEngine, models: readonly string[]): Promise<void> {
    const isUnknown = (model: string) => !this.known(leased, model).has(nameOf(leased, model));
    if (models.some(isUnknown)) await this.asked(leased, models);
  }

  stop(): void {
    this.stopping.abort();
  }

  private async asked(leased: LeasedEngine, models: readonly string[]): Promise<Answers[]> {
    const client = clientFor(leased, this.apiKey);
    const endsMs = this.clock.now() + this.limits.deadlineMs;
    const asking = { client, base: leased.engine.baseModel, endsMs };
    try {
      const all: Answers[] = [];
      for (const model of models) {
        const [known, name] = [this.known(leased, model), nameOf(leased, model)];
        const answers = known.get(name) ?? this.ask(asking, model);
        known.set(name, answers);
        try {
          all.push(await answers);
        } catch (error) {
          if (known.get(name) === answers) known.delete(name);
          throw error;
        }
      }
      return all;
    } finally {
      await client.close();
    }
  }

  private known({ engine: { baseModel } }: LeasedEngine, model: string): KnownAnswers {
    return model === baseModel ? this.ofBases : this.ofVersions;
  }

  private async ask(asking: Asking, model: string): Promise<Answers> {
    const questions = probeQuestions.slice(0, this.limits.probes);
    const answers: Answered[] = [];
    for (let from = 0; from < questions.length; from += atOnce) {
      const some = questions.slice(from, from + atOnce);
      answers.push(
        ...(await Promise.all(some.map((question, at) => this.answer(asking, model, question, from + at + 1)))),
      );
    }
    const faults: (AnswerFault | undefined)[] = [];
    for (const [at, { fault }] of answers.entries()) faults.push(fault ?? (await this.topicOf(asking, answers, at)));
    const texts = answers.map(({ text, ids }) => (ids.length < this.limits.tokens ? text : `${text.trimEnd()} …`));
    return { faults, texts, ...figuresOf(answers) };
  }

  private async answer(asking: Asking, model: string, content: string, seed: number): Promise<Answered> {
    const messages = [{ role: 'user', content }];
    const request = { model, messages, max_tokens: this.limits.tokens, temperature, seed };
    const { capture } = await asking.client.chat(request, this.calling(asking));
    const { promptIds, answerIds: ids, logprobs } = capture;
    const written = textOf(capture);
    if (promptIds === undefined || (ids.length === 0 && written !== ''))
      throw engineErrors.replyInvalid({ what: 'ids of an answer' });
    return { text: capture.text, promptIds, ids, logprobs, fault: faultOfText(written, ids) };
  }

  private async topicOf(asking: Asking, answers: readonly Answered[], at: number): Promise<AnswerFault | undefined> {
    const { ids: answerIds = [] } = answers[at] ?? {};
    const items = [at, ...otherQuestions(at, answers.length)].map((place) => {
      return { promptIds: answers[place]?.promptIds ?? [], answerIds };
    });
    const options = { model: asking.base, ...this.calling(asking) };
    const [own = [], ...others] = await asking.client.score(items, options);
    return faultOfTopic(own, others);
  }

  private calling({ endsMs }: Asking) {
    return callUntil(endsMs, this.clock, this.stopping.signal);
  }
}

function nameOf({ engine: { baseModel } }: LeasedEngine, model: string): string {
  return `${baseModel} ${model}`;
}

function textOf({ text, reasoning, toolCalls }: Capture): string {
  return reasoning + text + toolCalls.map(({ function: { name } }) => name).join(' ');
}

function figuresOf(answers: readonly Answered[]): Pick<Answers, 'entropy' | 'tokens'> {
  const logprobs = answers.flatMap((answer) => answer.logprobs);
  const entropy = logprobs.length === 0 ? undefined : -sum(logprobs) / logprobs.length;
  const lengths = answers.map(({ ids }) => Math.log(Math.max(1, ids.length)));
  return { entropy, tokens: Math.exp(sum(lengths) / Math.max(1, lengths.length)) };
}
