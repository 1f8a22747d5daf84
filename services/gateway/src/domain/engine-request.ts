// What is the engine asked?
//
// In: the client's request, its messages with lessons in them where some are shown, and the engine's name for the weights.
// Out: the body for the engine: those of the client's fields
// that an engine of its dialect takes. Pure.
import { fateOfChatField, JsonText, type EngineChatRequest, type EngineDialect } from '@backtalk/dialects';
import { isBaseVersion } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import type { ChatRequest } from './chat-request.js';
import type { Replica } from './replica-choice.js';

/** Throws `unsupported_parameter` for a field that engines of other dialects take, and this one does not. */
export function engineRequest(
  { fields, writtenFields, messages, sampling }: ChatRequest,
  engineModel: string,
  dialect: EngineDialect,
  written = messages.json,
): EngineChatRequest {
  const isPassed = (field: string): boolean => {
    const fate = fateOfChatField(field, dialect);
    if (fate === 'refused')
      throw gatewayErrors.unsupportedParameter({ param: field, why: 'the engine that answers here does not take it' });
    return fate === 'passed';
  };
  const passedOn: Record<string, unknown> = {};
  for (const field of Object.keys(fields)) if (isPassed(field)) passedOn[field] = fields[field];
  for (const [field, json] of Object.entries(writtenFields)) if (isPassed(field)) passedOn[field] = new JsonText(json);
  return { ...passedOn, ...sampling.fields, model: engineModel, messages: new JsonText(written) };
}

export function engineModelOf(version: string, replica: Replica): string {
  return isBaseVersion(version) ? replica.baseModel : version;
}
