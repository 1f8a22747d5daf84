// A learning run: comparison rows first, then sessions; whenever a new version answers, talking stops until the version
// has been measured on held-out questions. In: user, scorer, endpoint. Out: rows in the order in which they were measured.
import OpenAI from 'openai';
import type { EngineClient } from '@backtalk/dialects';
import { isBacktalkError } from '@backtalk/kit';
import type { Output } from '@backtalk/cli';
import type { HeldOutAnswer, Scores } from './scorer/scores.js';
import type { LearningRow } from './learning-table.js';
import { askHeldOut, klToBase, type MeasuredAnswers, type MeasureOptions } from './measure.js';
import { emptyCounts, talkOnce, numberOf, type TalkCounts, type Talker } from './talk.js';

export interface AnswerScorer {
  score(answers: readonly HeldOutAnswer[]): Promise<Scores>;
  /** Scores of the answers cut to their first sentence, and of the answers each given to another question. */
  scoreCut(answers: readonly HeldOutAnswer[]): Promise<Scores>;
  scoreShuffled(answers: readonly HeldOutAnswer[]): Promise<Scores>;
}

export interface SimulateOptions {
  readonly client: OpenAI;
  readonly engine: EngineClient;
  /** The base model's name at the engine. */
  readonly engineBase: string;
  readonly policy: string;
  readonly user: Talker;
  /** Undefined: nothing is measured. */
  readonly scorer: AnswerScorer | undefined;
  readonly hint: string;
  readonly sessions: number;
  /** Ends the run early, once this version has been measured. */
  readonly untilVersion: number | undefined;
  readonly parallelSessions: number;
  readonly maxTokens: number;
  readonly repliesMax: number;
  readonly measure: Omit<MeasureOptions, 'client' | 'onAnswer' | 'signal'>;
  readonly klAnswers: number;
  /** Learning rests while a version is measured, so that none is replaced before its turn. */
  readonly rest: (resting: boolean) => Promise<void>;
  readonly output: Output;
  /** Ends the run early, also in the middle of a measurement. */
  readonly signal: AbortSignal;
}

export interface SimulationResult {
  readonly rows: readonly LearningRow[];
  readonly counts: TalkCounts;
  /** Answers of the last version measured, to read. */
  readonly lastAnswers: readonly HeldOutAnswer[];
}

export class Simulation {
  private readonly rows: LearningRow[] = [];
  private readonly counts: TalkCounts;
  private measured = 0;
  private lastAnswers: readonly HeldOutAnswer[] = [];

  constructor(private readonly options: SimulateOptions) {
    this.counts = emptyCounts(this.name(0));
  }

  /** What was measured before it was ended, where it was. */
  async run(): Promise<SimulationResult> {
    try {
      await this.measureComparisons();
      await this.talkAndMeasure();
    } catch (error) {
      if (!this.options.signal.aborted) throw error;
    }
    return { rows: this.rows, counts: this.counts, lastAnswers: this.lastAnswers };
  }

  private async talkAndMeasure(): Promise<void> {
    const { output, sessions, signal, untilVersion = Number.POSITIVE_INFINITY } = this.options;
    const progress = output.progress('sessions', sessions);
    try {
      while (this.counts.sessions < sessions && this.measured < untilVersion && !signal.aborted) {
        await this.talkUntilNewVersion(() => progress.update(this.counts.sessions, this.describe()));
        await this.measureNewVersion();
      }
    } finally {
      progress.stop();
    }
  }

  private name(version: number): string {
    return `${this.options.policy}-v${String(version)}`;
  }

  private describe(): string {
    const { version, corrected, praised } = this.counts;
    const last = this.rows.findLast(({ kind }) => kind === 'version');
    const headline = last === undefined ? '' : ` · headline ${last.scores.headline.toFixed(2)}`;
    return `${version} · ${String(corrected)} corrected, ${String(praised)} praised${headline}`;
  }

  /** Sessions in parallel lanes; every lane ends its session before the version is measured. */
  private async talkUntilNewVersion(onSession: () => void): Promise<void> {
    const { options, counts } = this;
    const { signal } = options;
    let begun = counts.sessions;
    const lane = async () => {
      while (begun < options.sessions && !signal.aborted && this.isMeasured()) {
        begun += 1;
        await talkOnce({ ...options, model: options.policy }, counts);
        onSession();
      }
    };
    await Promise.all(Array.from({ length: options.parallelSessions }, lane));
  }

  private isMeasured(): boolean {
    return this.options.scorer === undefined || numberOf(this.counts.version) <= this.measured;
  }

  /** Every version since the last measured one; a version that is not loaded any more is passed over. */
  private async measureNewVersion(): Promise<void> {
    const { scorer, rest } = this.options;
    if (scorer === undefined || this.isMeasured()) return;
    await rest(true);
    try {
      while (!this.isMeasured()) {
        this.measured += 1;
        await this.measure(scorer, this.name(this.measured));
      }
    } finally {
      await rest(false);
    }
  }

  private async measure(scorer: AnswerScorer, version: string): Promise<void> {
    const { client, engine, engineBase, klAnswers, measure, output, signal } = this.options;
    try {
      const { scored } = await this.ask(version, version);
      const few = { ...measure, client, signal, questions: measure.questions.slice(0, klAnswers) };
      const drift = await klToBase(engine, engineBase, few, version);
      this.add({
        name: version,
        kind: 'version',
        sessions: this.counts.sessions,
        scores: await scorer.score(scored),
        kl: drift?.nats,
      });
      this.lastAnswers = scored;
    } catch (error) {
      if (!(error instanceof OpenAI.NotFoundError) && !isBacktalkError(error, 'model_not_found')) throw error;
      output.complain(`${version} was replaced before it could be measured`);
    }
  }

  private async ask(label: string, model: string, hint?: string): Promise<MeasuredAnswers> {
    const { client, measure, output, signal } = this.options;
    const progress = output.progress(`measuring ${label}`, measure.questions.length * measure.samples);
    const onAnswer = (done: number) => {
      progress.update(done, 'held-out questions');
    };
    try {
      return await askHeldOut({ ...measure, client, onAnswer, signal }, model, hint);
    } finally {
      progress.stop();
    }
  }

  private async measureComparisons(): Promise<void> {
    const { scorer, hint } = this.options;
    if (scorer === undefined) return;
    const plain = await this.ask('the base', this.name(0));
    const hinted = await this.ask('the base shown the hint', this.name(0), hint);
    const comparison = (name: string, scores: Scores, kl?: number) => {
      this.add({ name, kind: 'comparison', sessions: 0, scores, kl });
    };
    comparison('base', await scorer.score(plain.scored), 0);
    comparison('base shown the hint', await scorer.score(hinted.scored));
    comparison('base cut to its first sentence', await scorer.scoreCut(plain.scored));
    comparison('hinted answers shuffled', await scorer.scoreShuffled(hinted.scored));
  }

  private add(row: LearningRow): void {
    this.rows.push(row);
    this.options.output.value({ event: 'measured', ...row });
    this.options.output.complain(
      `${row.name}: obeys ${row.scores.obeys.toFixed(2)}, hit@1 ${row.scores.hit.toFixed(2)}, headline ${row.scores.headline.toFixed(2)}`,
    );
  }
}
