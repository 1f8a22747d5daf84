// A machine to experiment on: the processes of `npm start` with any base model, people who talk to it, and measurements of its
// versions. In: a model's folder, keys, variables. Out: rows of figures, and what the log says of each step.
import { createEngineClient, type EngineClient } from '@backtalk/dialects';
import { baseModel, loadSecrets, policy as onePolicy } from '@backtalk/deploy';
import { endpointClient } from '@backtalk/cli';
import { type Broker, FactReader, folderBlobStore, givenUpBy, isBacktalkError, learningSwitch } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import OpenAI from 'openai';
import { z } from 'zod';
import { startTestMachine, type TestMachine } from '../../loop/machine.js';
import { askHeldOut, klToBase, type MeasureOptions } from '../../simulate/measure.js';
import { numberOf } from '../../simulate/talk.js';
import { startScorer } from '../../simulate/scorer/scorer-process.js';
import { readUser } from '../../simulate/user/user-file.js';
import { machineOptions, type ExperimentMachine } from './machine-options.js';
import type { Sizes } from './options.js';
import { ReferenceSet } from './reference.js';
import { lessonSchema, reminded, shownLessons, type Lesson, type Row, type Step } from './result.js';

export interface LaboratoryOptions extends ExperimentMachine {
  readonly sizes: Sizes;
  readonly say: (progress: string) => void;
}

export interface Asked {
  /** Whose wish and questions are measured. */
  readonly of: string;
  readonly block: string;
  readonly version: string;
  readonly step: number;
}

/** What a client may ask an answer to be at most, in tokens. */
export const answerTokensMax = 48;
/** Held-out questions are asked as clients ask that leave it to their own defaults, warmer than the endpoint's. */
const temperature = 0.8;
const parallel = 16;
/** A question each. */
const klAnswers = 16;
const stepWithinMs = 900_000;
const begunWithinMs = 90_000;
/** A judge that reads words takes a second; wishes are compared before a batch closes. */
const beginsWithinMs = 45_000;
type Scorer = Awaited<ReturnType<typeof startScorer>>;

export class Laboratory {
  private readonly scorers = new Map<string, Scorer>();
  private readonly reader: FactReader;
  /** Of the last measurement, as they are. */
  answers: readonly string[] = [];
  /** Called with each measurement of a version. */
  measured: (row: Row) => Promise<void> = () => Promise.resolve();

  private constructor(
    private readonly options: LaboratoryOptions,
    readonly machine: TestMachine,
    private readonly engine: EngineClient,
    private readonly broker: Broker,
    private readonly reference: ReferenceSet,
  ) {
    this.reader = new FactReader(broker, folderBlobStore(machine.data.blobs));
  }

  /** Lends a laboratory, and stops its machine whatever happens. */
  static async lend<T>(options: LaboratoryOptions, use: (laboratory: Laboratory) => Promise<T>): Promise<T> {
    options.say('starting a machine');
    const machine = await startTestMachine(machineOptions(options));
    try {
      const apiKey = loadSecrets(machine.folder).engineKey;
      const engine = createEngineClient({ dialect: 'vllm', url: machine.engine, apiKey });
      const broker = await machine.broker();
      const reference = await ReferenceSet.read(engine, options.base?.name ?? baseModel);
      const laboratory = new Laboratory(options, machine, engine, broker, reference);
      return await use(laboratory).finally(() => laboratory.close());
    } finally {
      await machine.stop();
    }
  }

  /** The endpoint, as the holder of a key sees it. */
  client(key = 'none'): OpenAI {
    return endpointClient(`${this.machine.gateway}/v1`, key);
  }

  /** The base of one wish, untold and told, and what cutting and shuffling make of its answers. */
  async comparisons(of: string, key?: string): Promise<Row[]> {
    const scorer = await this.scorer(of);
    const base = `${onePolicy}-v0`;
    const { wish } = readUser(of);
    const plain = (await this.ask(of, base, key)).scored;
    const hinted = (await this.ask(of, base, key, wish)).scored;
    const reference = await this.reference.measure(this.base);
    const shown = await this.reference.measure(this.base, wish);
    const row = { of, block: '', step: 0 };
    return [
      { ...row, name: 'base', scores: await scorer.score(plain), kl: 0, reference },
      { ...row, name: 'base shown the wish', scores: await scorer.score(hinted), reference: shown },
      { ...row, name: 'base cut to its first sentence', scores: await scorer.scoreCut(plain) },
      { ...row, name: 'shown answers shuffled', scores: await scorer.scoreShuffled(hinted) },
    ];
  }

  /** The base shown what its teacher is shown now: the lessons that are in force, in the person's own words. */
  async taught(of: string, step: number, key?: string): Promise<Row[]> {
    const shown = (await this.lessons(onePolicy, key)).filter(
      ({ state, covered_by: cover, waits_for: first }) =>
        cover === null && first === null && (state === 'active' || state === 'learned'),
    );
    if (shown.length === 0) return [];
    const words = shown.map(({ text }) => text).join('\n\n');
    const { scored } = await this.ask(of, `${onePolicy}-v0`, key, words);
    return [{ of, block: '', name: shownLessons, step, scores: await (await this.scorer(of)).score(scored) }];
  }

  /** Undefined where the version is not loaded any more. */
  async measure({ of, block, version, step }: Asked, key?: string): Promise<Row | undefined> {
    try {
      const scorer = await this.scorer(of);
      const { scored } = await this.ask(of, version, key);
      const drift = await this.drift(of, version, key);
      const reference = await this.reference.measure(version);
      const scores = await scorer.score(scored);
      this.answers = scored.map(
        ({ question, answer, ended }) => `${question} → ${answer.replaceAll('\n', ' ⏎ ')}${ended ? '' : ' [cut]'}`,
      );
      this.options.say(`${version}: ${of} ${scores.headline.toFixed(2)} (obeys ${scores.obeys.toFixed(2)})`);
      const row = { of, block, name: version, step, scores, ...drift, reference };
      await this.measured(row);
      return row;
    } catch (error) {
      if (!(error instanceof OpenAI.NotFoundError) && !isBacktalkError(error, 'model_not_found')) throw error;
      this.options.say(`${version} was replaced before it could be measured`);
      return undefined;
    }
  }

  /** What serves, asked as a client asks that wants to be reminded of lessons, and as any other; `version` says what serves. */
  async atTwoSpeeds(of: string, { version, step }: Pick<Asked, 'version' | 'step'>): Promise<Row[]> {
    const rows: Row[] = [];
    for (const lessons of [false, true]) {
      const { scored, answers } = await this.ask(of, onePolicy, undefined, undefined, lessons);
      const mean = (valueOf: (answer: (typeof answers)[number]) => number) =>
        answers.reduce((sum, answer) => sum + valueOf(answer), 0) / Math.max(1, answers.length);
      const prompt = { tokens: mean(({ promptTokens }) => promptTokens), shown: mean(({ shown }) => shown) };
      const scores = await (await this.scorer(of)).score(scored);
      rows.push({ of, block: '', name: `${version}${lessons ? reminded : ''}`, step, scores, prompt });
    }
    return rows;
  }

  /** Learning of a policy stops and goes on, as by an operator. */
  async rest(policy: string, paused: boolean): Promise<void> {
    await learningSwitch(this.broker, policy).put({ paused });
  }

  /** Resolves when every step that was begun is decided: on two cores, talk beside it would only slow it down. */
  async decided(policy: string): Promise<void> {
    const filter = { weightsStaged: { policy } };
    const isDecided = async () => {
      const begun = (await this.reader.last('batchClosed', { policy }))?.message;
      if (begun === undefined || begun.samples.length === 0) return true;
      // The newest fact may be of an older version, which was retired.
      for await (const { message } of this.reader.read(['weightsStaged'], { filter }))
        if (message.version === begun.version && message.stage !== WeightsStaged_Stage.STAGE_CANDIDATE) return true;
      return false;
    };
    await until(isDecided, { what: `A step of ${policy} is decided`, timeoutMs: stepWithinMs, everyMs: 500 });
  }

  /** What answers now. */
  async serving(policy: string): Promise<{ readonly version: string; readonly step: number }> {
    const version = (await this.steps()).filter(({ stage }) => stage === 'stable').at(-1)?.version ?? `${policy}-v0`;
    return { version, step: numberOf(version) };
  }

  /** Whether a first step begins by what was said just now. */
  async begins(policy: string): Promise<boolean> {
    const isBegun = async () => (await this.steps()).length > 0;
    const waiting = until(isBegun, { what: `A step of ${policy} begins`, timeoutMs: beginsWithinMs, everyMs: 500 });
    return waiting.then(
      () => true,
      (error: unknown) => {
        if (isBacktalkError(error, 'never_happened')) return false;
        throw error;
      },
    );
  }

  /** The first version from this step on that serves, or the newest once nothing is being learned any more. */
  async reaches(policy: string, step: number): Promise<{ readonly version: string; readonly step: number }> {
    const reached = async () => {
      const serving = await this.serving(policy);
      const isOver = (await this.lessons(policy)).every(({ state }) => state !== 'active');
      return serving.step >= step || isOver ? serving : undefined;
    };
    const what = `Version ${String(step)} of ${policy} serves`;
    return until(reached, { what, timeoutMs: stepWithinMs, everyMs: 500 });
  }

  /** Resolves when a step's batch is closed and the step decided, or when that does not come: not every correction makes one. */
  async begun(policy: string, step: number): Promise<void> {
    const isBegun = async () => {
      for await (const { message } of this.reader.read(['batchClosed'], { filter: { batchClosed: { policy } } }))
        if (message.samples.length > 0 && numberOf(message.version) >= step) return true;
      return false;
    };
    try {
      await until(isBegun, {
        what: `Step ${String(step)} of ${policy} begins`,
        timeoutMs: begunWithinMs,
        everyMs: 1000,
      });
    } catch (error) {
      if (!isBacktalkError(error, 'never_happened')) throw error;
      return;
    }
    await this.decided(policy);
  }

  /** Of every policy and person that the key stands for. */
  async lessons(policy: string, key = 'none'): Promise<Lesson[]> {
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(`${this.machine.gateway}/v1/lessons?policy=${policy}`, {
      headers,
      signal: AbortSignal.timeout(10_000),
    });
    return z.object({ data: z.array(lessonSchema) }).parse(await response.json()).data;
  }

  /** Every step that was begun, in order. */
  async steps(): Promise<Step[]> {
    const steps = new Map<string, Step>();
    for await (const { name, message } of this.reader.read(['batchClosed', 'weightsTrained', 'weightsStaged'])) {
      if (name === 'batchClosed') {
        const { version, samples, why: closed, detail } = message;
        const begun = [...steps.values()].findLast(({ stage }) => stage === 'begun');
        if (begun !== undefined && givenUpBy.has(closed))
          steps.set(begun.version, { ...begun, stage: closed, why: detail });
        if (samples.length === 0) continue;
        const effective = samples.filter((sample) => sample.effective).length;
        const hinted = samples.filter(({ hindsight, lessons }) => hindsight !== '' || lessons.length > 0).length;
        const fresh = { stage: 'begun', why: '', measurements: {} };
        steps.set(version, { version, closed, samples: samples.length, effective, hinted, ...fresh });
      } else {
        const known = steps.get(message.version);
        if (known === undefined) continue;
        const more =
          name === 'weightsTrained'
            ? { stage: 'trained', measurements: message.report?.measurements ?? {} }
            : { stage: message.stage.replace('STAGE_', '').toLowerCase(), why: message.why };
        steps.set(message.version, { ...known, ...more });
      }
    }
    return [...steps.values()];
  }

  /** The base model, as the engine names it. */
  private get base(): string {
    return this.options.base?.name ?? baseModel;
  }

  private ask(of: string, model: string, key?: string, wish?: string, lessons = false) {
    const shown = lessons ? ', reminded' : wish === undefined ? '' : ', shown the wish';
    this.options.say(`measuring ${model} on ${of}${shown}`);
    return askHeldOut({ ...this.asking(of, key), lessons }, model, wish);
  }

  private async drift(of: string, version: string, key?: string): Promise<Pick<Row, 'kl' | 'klAnswers'>> {
    const asking = this.asking(of, key);
    const few = { ...asking, questions: asking.questions.slice(0, klAnswers) };
    const found = await klToBase(this.engine, this.base, few, version);
    return found === undefined ? {} : { kl: found.nats, klAnswers: found.answers };
  }

  private asking(of: string, key?: string): MeasureOptions {
    const { questions, samples } = this.options.sizes;
    const heldOut = readUser(of).questions.heldout.slice(0, questions);
    return {
      client: this.client(key),
      questions: heldOut,
      samples,
      maxTokens: answerTokensMax,
      temperature,
      parallel,
    };
  }

  private async scorer(of: string): Promise<Scorer> {
    const running = this.scorers.get(of) ?? (await startScorer(readUser(of).rule));
    this.scorers.set(of, running);
    return running;
  }

  private async close(): Promise<void> {
    for (const scorer of this.scorers.values()) await scorer.stop();
    await this.engine.close();
    await this.broker.close();
  }
}
