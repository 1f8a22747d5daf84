// A model at an OpenAI-compatible endpoint that is asked for JSON objects: each call has a deadline, each failure as many tries
// as are named here, each reply that cannot be used one more. In: messages and a form. Out: the object, nothing where no reply
// could be used, or an error in one line. It counts what happened, and repeats no word of what was said.
import {
  createEngineClient,
  type CallOptions,
  type EngineChatRequest,
  type EngineClient,
  type RawObject,
} from '@backtalk/dialects';
import { backOffMs, BacktalkError, isBacktalkError, systemClock, type Clock } from '@backtalk/kit';
import type { z } from 'zod';
import { llmErrors } from './errors.js';
import { readForm, type Unusable } from './form.js';
import type { NamedModel } from './named-model.js';

export interface ChatTurn {
  readonly role: 'system' | 'user';
  readonly content: string;
}

export interface AskOptions {
  readonly temperature: number;
  readonly seed: number;
  readonly signal?: AbortSignal;
}

export interface AskedOptions {
  readonly clock?: Clock;
  /** Of one call. */
  readonly deadlineMs?: number;
}

/** What became of the calls: `failed` ones gave no reply in all their tries. */
export type AskedCounts = Record<'replies' | 'retries' | 'failed' | Unusable, number>;

const deadlineUsualMs = 120_000;
const triesMax = 5;
/** Of one question; a model that writes in no form is not asked again and again. */
const repliesMax = 2;
const waits = { firstMs: 2_000, mostMs: 30_000 };
/** An endpoint that wants to be left alone for longer is away. */
const retryAfterMsMax = 120_000;
/** Thoughts among them, where a model thinks. */
const replyTokensMax = 4_096;

/** What a request tells besides messages, as far as the endpoint takes it. */
interface Told {
  readonly length: 'max_tokens' | 'max_completion_tokens';
  readonly fields: readonly ('seed' | 'temperature')[];
}

export class AskedModel {
  readonly counts: AskedCounts = { replies: 0, retries: 0, failed: 0, empty: 0, refusal: 0, overlong: 0, malformed: 0 };
  private readonly client: EngineClient;
  private readonly clock: Clock;
  private readonly deadlineMs: number;
  private told: Told = { length: 'max_tokens', fields: ['seed', 'temperature'] };

  /** @param whose `user` or `scorer`: what the model is for */
  constructor(
    private readonly named: NamedModel,
    private readonly whose: string,
    { clock = systemClock, deadlineMs = deadlineUsualMs }: AskedOptions = {},
  ) {
    this.client = createEngineClient({ dialect: 'openai', url: named.url, apiKey: named.key });
    this.clock = clock;
    this.deadlineMs = deadlineMs;
  }

  /** Undefined where no reply was in the form, or none could be used for another reason. */
  async ask<T>(messages: readonly ChatTurn[], form: z.ZodType<T>, options: AskOptions): Promise<T | undefined> {
    for (let reply = 0; reply < repliesMax; reply += 1) {
      // Another seed: the same one gives the same reply again.
      const read = readForm(await this.called(messages, { ...options, seed: options.seed + reply }), form);
      this.counts.replies += 1;
      if ('value' in read) return read.value;
      this.counts[read.unusable] += 1;
    }
    return undefined;
  }

  close(): Promise<void> {
    return this.client.close();
  }

  /** Whether what it says repeats with a seed, as far as is known. */
  get takesSeed(): boolean {
    return this.told.fields.includes('seed');
  }

  /** One answer, in at most `triesMax` calls; an endpoint that refuses a field is asked without it, and no try is counted. */
  private async called(messages: readonly ChatTurn[], options: AskOptions): Promise<RawObject> {
    const { signal } = options;
    let tries = 0;
    let { told } = this;
    for (;;) {
      try {
        const { raw } = await this.client.chat(this.request(messages, options, told), this.limits(signal));
        // Refused before and taken now: the endpoint does not know what was left out.
        if (told.fields.length < this.told.fields.length || told.length !== this.told.length) this.told = told;
        return raw;
      } catch (error) {
        const less = toldLess(told, error);
        if (less !== undefined) {
          told = less;
          continue;
        }
        tries += 1;
        const waitMs = signal?.aborted === true ? undefined : waitBefore(error, tries);
        if (waitMs === undefined) throw this.failure(error, tries);
        this.counts.retries += 1;
        await this.clock.sleep(waitMs, signal);
      }
    }
  }

  private limits(signal: AbortSignal | undefined): CallOptions {
    return signal === undefined ? { deadlineMs: this.deadlineMs } : { deadlineMs: this.deadlineMs, signal };
  }

  private request(messages: readonly ChatTurn[], options: AskOptions, { length, fields }: Told): EngineChatRequest {
    const settings = Object.fromEntries(fields.map((field) => [field, options[field]]));
    return { model: this.named.model, messages, [length]: replyTokensMax, ...settings };
  }

  private failure(error: unknown, tries: number): unknown {
    if (!(error instanceof BacktalkError) || error.code === 'request_aborted') return error;
    this.counts.failed += 1;
    const { model, url } = this.named;
    const who = `The ${this.whose}'s model ${model} at ${url}`;
    const why = `${this.reason(error)}${tries > 1 ? ` (${String(tries)} tries)` : ''}`;
    return isFinal(error) ? llmErrors.refused({ who, why }, error) : llmErrors.away({ who, why }, error);
  }

  private reason(error: BacktalkError): string {
    const { keyFile, keyOption } = this.named;
    switch (error.code) {
      case 'engine_unauthorized':
        return keyFile === undefined ? `asks for a key (--${keyOption} FILE)` : `refuses the key of ${keyFile}`;
      case 'model_not_found':
        return 'is not served there any more';
      case 'engine_unsupported':
        return 'gives no chat completions';
      case 'engine_timeout':
        return `did not answer within ${String(this.deadlineMs / 1_000)} s`;
      case 'engine_overloaded':
        return `takes no request now and asks to wait ${String(error.detail['retryAfterSeconds'])} s`;
      case 'context_length_exceeded':
        return 'has a shorter context than the conversation';
      case 'invalid_request':
        return 'refuses the request as it stands';
      case 'engine_failed':
        return `fails with status ${String(error.detail['engineStatus'])}`;
      case 'engine_reply_invalid':
        return 'answers with no chat completion';
      default:
        return `cannot be reached (${String(error.detail['why'])})`;
    }
  }
}

/** What is left to be told after this refusal; undefined where it is about something else. Each field goes once. */
function toldLess({ length, fields }: Told, error: unknown): Told | undefined {
  if (!isBacktalkError(error, 'invalid_request')) return undefined;
  const { param } = error.detail;
  if (param === 'max_tokens' && length === param) return { length: 'max_completion_tokens', fields };
  // Some endpoints refuse a field that they do not know without its name.
  const spared = param === undefined ? fields[0] : fields.find((field) => field === param);
  return spared === undefined ? undefined : { length, fields: fields.filter((field) => field !== spared) };
}

/** Every further request would be answered alike. */
function isFinal({ code }: BacktalkError): boolean {
  return ['engine_unauthorized', 'model_not_found', 'engine_unsupported'].includes(code);
}

/** Undefined where another try is of no use, or one too many. */
function waitBefore(error: unknown, tries: number): number | undefined {
  if (!(error instanceof BacktalkError) || error.retry !== 'later' || isFinal(error)) return undefined;
  if (tries >= triesMax) return undefined;
  if (error.code !== 'engine_overloaded') return backOffMs(tries, waits);
  const asked = Number(error.detail['retryAfterSeconds']) * 1_000;
  return asked > retryAfterMsMax ? undefined : Math.max(asked, backOffMs(tries, waits));
}
