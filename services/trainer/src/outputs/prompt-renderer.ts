// Prompts as engines render them: the template stands where answers are made, and nowhere else. In: messages, tools and template
// arguments of a request, and the base model. Out: ids from an engine that serves that base.
import type { EngineClient } from '@backtalk/dialects';
import { asBacktalkError, isBacktalkError, type JsonObject } from '@backtalk/kit';

import { trainerErrors } from '../errors.js';
import type { ServingEngines } from './serving-engines.js';

export interface Prompt {
  readonly messages: readonly unknown[];
  readonly tools: readonly unknown[];
  readonly templateArguments: JsonObject;
}

/** Nothing where engines refuse the conversation: no waiting helps then. */
export type Render = (prompt: Prompt) => Promise<readonly number[] | undefined>;

/** Engines give templates ten seconds. */
const renderDeadlineMs = 15_000;
const refusals = new Set(['invalid_request', 'context_length_exceeded']);

export class PromptRenderer {
  constructor(private readonly engines: ServingEngines) {}

  /** Throws `renderer_away` where no engine can be asked: that says nothing about a batch. */
  async use<T>(baseModel: string, signal: AbortSignal, work: (render: Render) => Promise<T>): Promise<T> {
    return this.engines.use(baseModel, ['tokenize'], (engines) =>
      work((prompt) => rendered(engines, baseModel, prompt, signal)),
    );
  }
}

async function rendered(
  engines: readonly EngineClient[],
  baseModel: string,
  { messages, tools, templateArguments }: Prompt,
  signal: AbortSignal,
): Promise<readonly number[] | undefined> {
  const request = {
    model: baseModel,
    messages,
    ...(tools.length === 0 ? {} : { tools }),
    ...(Object.keys(templateArguments).length === 0 ? {} : { templateArguments }),
  };
  let last: unknown;
  for (const engine of engines) {
    try {
      return await engine.tokenize(request, { deadlineMs: renderDeadlineMs, signal });
    } catch (error) {
      signal.throwIfAborted();
      if (isBacktalkError(error) && refusals.has(error.code)) return undefined;
      last = error;
    }
  }
  throw trainerErrors.rendererAway({ baseModel }, asBacktalkError(last));
}
