// Prompts as engines render them: the template stands where answers are made, and nowhere else. In: messages, tools and template
// arguments of a request, and the base model. Out: ids from an engine that serves that base. That an engine is absent says nothing about
// a prompt; that one had it and failed does. A prompt on which the connections of two engines were lost is sent to no third.
import { DeadlyPrompts, isEngineError, isLostEngine } from '@backtalk/dialects';
import { asBacktalkError, isBacktalkError, type Clock, type JsonObject } from '@backtalk/kit';

import { trainerErrors } from '../errors.js';
import type { ServingEngine, ServingEngines } from './serving-engines.js';

export interface Prompt {
  readonly messages: readonly unknown[];
  readonly tools: readonly unknown[];
  readonly templateArguments: JsonObject;
}

/** `refused` where engines refuse the conversation, `given_up` where two ended on it: no waiting helps then. */
export type Rendered = readonly number[] | 'refused' | 'given_up';
export type Render = (prompt: Prompt) => Promise<Rendered>;

/** Engines give templates ten seconds. */
const renderDeadlineMs = 15_000;
const healthMs = 2_000;
/** The engine did not have the prompt, or knows nothing of its model. */
const absent = ['engine_unreachable', 'engine_overloaded', 'engine_unauthorized', 'model_not_found'] as const;

export class PromptRenderer {
  private readonly deadly = new DeadlyPrompts();

  constructor(
    private readonly engines: Pick<ServingEngines, 'use'>,
    private readonly clock: Clock,
  ) {}

  /** Throws `renderer_away` where no engine can be asked, and `render_failed` where one had a prompt and failed. */
  async use<T>(baseModel: string, signal: AbortSignal, work: (render: Render) => Promise<T>): Promise<T> {
    return this.engines.use(baseModel, ['tokenize'], (engines) =>
      work((prompt) => this.rendered(engines, baseModel, prompt, signal)),
    );
  }

  private async rendered(
    engines: readonly ServingEngine[],
    baseModel: string,
    prompt: Prompt,
    signal: AbortSignal,
  ): Promise<Rendered> {
    const { messages, tools, templateArguments } = prompt;
    const request = {
      model: baseModel,
      messages,
      ...(tools.length === 0 ? {} : { tools }),
      ...(Object.keys(templateArguments).length === 0 ? {} : { templateArguments }),
    };
    let away: unknown;
    let failed: unknown;
    for (const { url, client } of engines) {
      if (this.deadly.restMs(prompt, this.clock.now()) > 0) return 'given_up';
      try {
        const ids = await client.tokenize(request, { deadlineMs: renderDeadlineMs, signal });
        this.deadly.answered(prompt);
        return ids;
      } catch (error) {
        signal.throwIfAborted();
        if (isEngineError(error, 'invalid_request', 'context_length_exceeded')) return 'refused';
        if (isLostEngine(error)) this.deadly.died(prompt, url, this.clock.now());
        if (await hadPrompt(client, error)) failed = error;
        else away = error;
      }
    }
    if (this.deadly.restMs(prompt, this.clock.now()) > 0) return 'given_up';
    if (failed !== undefined) throw trainerErrors.renderFailed({ reason: asBacktalkError(failed).code }, failed);
    throw trainerErrors.rendererAway({ baseModel }, asBacktalkError(away));
  }
}

/** An engine that is silent on this prompt and well otherwise has failed on it. */
async function hadPrompt(client: ServingEngine['client'], error: unknown): Promise<boolean> {
  if (isEngineError(error, 'engine_timeout')) return (await client.health({ deadlineMs: healthMs })) === 'up';
  return isBacktalkError(error) && !isEngineError(error, ...absent);
}
