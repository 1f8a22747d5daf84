// Prompts as engines render them: the template stands where answers are made, and nowhere else. In: messages, tools and template
// arguments of a request, and the base model. Out: ids from an engine that serves that base, found by its loader's lease.
import { createEngineClient, dialectNamed, type EngineClient } from '@backtalk/dialects';
import { asBacktalkError, isBacktalkError, type JsonObject, type LeaseView } from '@backtalk/kit';

import { trainerErrors } from '../errors.js';

export interface Prompt {
  readonly messages: readonly unknown[];
  readonly tools: readonly unknown[];
  readonly templateArguments: JsonObject;
}

/** Nothing where engines refuse the conversation: no waiting helps then. */
export type Render = (prompt: Prompt) => Promise<readonly number[] | undefined>;

/** Engines give templates ten seconds. */
const renderDeadlineMs = 15_000;
/** Asked one after the other, where the first does not answer. */
const enginesMax = 3;
const refusals = new Set(['invalid_request', 'context_length_exceeded']);

export class PromptRenderer {
  constructor(
    private readonly leases: LeaseView,
    private readonly apiKey: string,
  ) {}

  stop(): void {
    this.leases.stop();
  }

  /** Throws `renderer_away` where no engine can be asked: that says nothing about a batch. */
  async use<T>(baseModel: string, signal: AbortSignal, work: (render: Render) => Promise<T>): Promise<T> {
    const { apiKey } = this;
    const engines = this.serving(baseModel).map(({ url, dialect }) =>
      createEngineClient({ url, dialect: dialectNamed(dialect), apiKey }),
    );
    try {
      return await work((prompt) => rendered(engines, baseModel, prompt, signal));
    } finally {
      await Promise.all(engines.map((engine) => engine.close()));
    }
  }

  private serving(baseModel: string) {
    const able = this.leases.current().flatMap(({ engine }) => {
      const isAble =
        engine?.ready === true && engine.pools.includes('serving') && engine.capabilities.includes('tokenize');
      return isAble && engine.baseModel === baseModel ? [engine] : [];
    });
    if (able.length === 0) throw trainerErrors.rendererAway({ baseModel });
    return able.slice(0, enginesMax);
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
