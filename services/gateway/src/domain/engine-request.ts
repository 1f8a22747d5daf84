// What is the engine asked?
//
// In: the client's request, the sampling parameters and the engine's name for the weights. Out: the body for the
// engine: the client's fields, less those that are the gateway's business. Pure; never changes the client's body.
import type { EngineChatRequest } from '@backtalk/dialects';
import type { ChatRequest } from './chat-request.js';
import type { JsonObject } from './json-shape.js';
import { isBaseVersion } from './model-name.js';
import type { Replica } from './replica-choice.js';
import type { Sampling } from './sampling.js';
import { sessionBodyKeys } from './session-name.js';

/** `user`, `metadata` and `store` name people to OpenAI; `request_id` and `cache_salt` would let two clients collide. */
const keptBack: ReadonlySet<string> = new Set([
  ...sessionBodyKeys,
  'user',
  'metadata',
  'store',
  'request_id',
  'cache_salt',
  'priority',
]);

export function engineRequest(request: ChatRequest, sampling: Sampling, engineModel: string): EngineChatRequest {
  const passedOn: JsonObject = {};
  for (const field in request.body) if (!keptBack.has(field)) passedOn[field] = request.body[field];
  return { ...passedOn, ...sampling.fields, model: engineModel, messages: request.messages };
}

export function engineModelOf(version: string, replica: Replica): string {
  return isBaseVersion(version) ? replica.baseModel : version;
}
