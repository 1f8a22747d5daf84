// Asks an engine about cases of learned lessons. The base answers each, shown the lesson and not shown it, and then the base, the candidate and
// what serves say how likely they make both answers. One case after the other, so that people are answered between.
import type { EngineClient, ScoreItem } from '@backtalk/dialects';
import { hintedMessages, isBacktalkError, lastHumanMessage, templateTokenIn, type Clock } from '@backtalk/kit';
import type { AskedCase, Case, CaseScores, Leaning } from '../domain/cases.js';
import { sum } from '../domain/means.js';
import type { CaseRequest, LessonCases } from './lesson-cases.js';
import type { LeasedEngine } from './loaders.js';
import { callUntil, clientFor } from './probe-scores.js';

export interface CaseBudget {
  /** Of one answer. */
  readonly tokens: number;
  /** Of all cases: those that are left have their turn with later versions. */
  readonly withinMs: number;
}

/** The engine's names. */
export interface CaseModels {
  readonly base: string;
  readonly candidate: string;
  readonly serving: string;
}

/** What an engine cannot take, or not in time, says nothing about weights. */
const refusals: ReadonlySet<string> = new Set(['invalid_request', 'context_length_exceeded', 'engine_timeout']);

interface Asking extends CaseModels {
  readonly client: EngineClient;
  readonly endsMs: number;
}

export class CaseScorer {
  private readonly stopping = new AbortController();

  constructor(
    private readonly apiKey: string,
    private readonly cases: LessonCases,
    private readonly budget: CaseBudget,
    private readonly clock: Clock,
  ) {}

  /** @param number of the candidate among its policy's versions */
  async ask(leased: LeasedEngine, models: CaseModels, number: number): Promise<AskedCase[]> {
    const { capabilities } = leased.engine;
    if (capabilities.length > 0 && !capabilities.includes('tokenize')) return [];
    const cases = await this.cases.forVersion(number);
    const asked: AskedCase[] = [];
    if (cases.length === 0) return asked;
    const client = clientFor(leased, this.apiKey);
    const endsMs = this.clock.now() + this.budget.withinMs;
    try {
      for (const of of cases) {
        if (this.clock.now() >= endsMs) break;
        const scores = await this.scoresOf({ ...models, client, endsMs }, of);
        if (scores !== undefined) asked.push({ of, ...scores });
      }
      return asked;
    } finally {
      await client.close();
    }
  }

  stop(): void {
    this.stopping.abort();
  }

  private async scoresOf(asking: Asking, of: Case): Promise<CaseScores | undefined> {
    if ([...of.told, ...of.untold].some((text) => templateTokenIn(text) !== undefined)) return undefined;
    const request = await this.cases.request(of);
    if (request === undefined) return undefined;
    try {
      return await this.scored(asking, of, request);
    } catch (error) {
      if (isBacktalkError(error) && refusals.has(error.code)) return undefined;
      throw error;
    }
  }

  private async scored(asking: Asking, of: Case, request: CaseRequest): Promise<CaseScores> {
    const { client, base, candidate, serving } = asking;
    const toldIds = await this.rendered(asking, request, of.told);
    const untoldIds = await this.rendered(asking, request, of.untold);
    const prompts = { model: base, prompt: [toldIds, untoldIds], maxTokens: this.budget.tokens, temperature: 0 };
    const answers = (await client.completions(prompts, this.calling(asking))).map(({ ids }) => ids);
    const leanings = async (model: string, ...prompts: readonly (readonly number[])[]): Promise<Leaning[]> => {
      const items = prompts.flatMap((promptIds) => answers.map((answerIds): ScoreItem => ({ promptIds, answerIds })));
      const sums = (await client.score(items, { model, ...this.calling(asking) })).map(sum);
      return prompts.map((_, at) => ({ told: sums[2 * at] ?? Number.NaN, untold: sums[2 * at + 1] ?? Number.NaN }));
    };
    const [baseTold = unknown, baseUntold = unknown] = await leanings(base, toldIds, untoldIds);
    const [own = unknown] = await leanings(candidate, request.promptIds);
    const [other = unknown] = await leanings(serving, request.promptIds);
    return { baseTold, baseUntold, candidate: own, serving: other };
  }

  private rendered(
    asking: Asking,
    { promptIds, messages, tools, templateArguments }: CaseRequest,
    hints: readonly string[],
  ): Promise<readonly number[]> {
    if (hints.length === 0) return Promise.resolve(promptIds);
    const hinted = hintedMessages(messages, hints, 'human', lastHumanMessage(messages)) ?? messages;
    const request = {
      model: asking.base,
      messages: hinted,
      ...(tools.length === 0 ? {} : { tools }),
      ...(Object.keys(templateArguments).length === 0 ? {} : { templateArguments }),
    };
    return asking.client.tokenize(request, this.calling(asking));
  }

  private calling({ endsMs }: Asking) {
    return callUntil(endsMs, this.clock, this.stopping.signal);
  }
}

const unknown: Leaning = { told: Number.NaN, untold: Number.NaN };
