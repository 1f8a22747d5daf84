// Are these the messages of a chat?
//
// In: the `messages` field. Out: the same list, typed as far as the gateway reads it, or a refusal that names the place.
// Pure. It never follows an address: parts that would make an engine fetch one are refused.
import { gatewayErrors } from '../errors.js';
import { isObject, type JsonObject } from './json-shape.js';

/** An OpenAI chat message; `content` is text, a list of parts, or absent. */
export interface ChatMessage extends JsonObject {
  readonly role: string;
}

const roles = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function']);

export function checkMessages(value: unknown): readonly ChatMessage[] {
  if (value === undefined || value === null) throw gatewayErrors.missingParameter({ param: 'messages' });
  if (!Array.isArray(value)) throw gatewayErrors.invalidParameter({ param: 'messages', why: 'it must be a list' });
  if (value.length === 0)
    throw gatewayErrors.invalidParameter({ param: 'messages', why: 'it must hold at least one message' });
  return value.map((message: unknown, index) => checkMessage(message, `messages[${index}]`));
}

function checkMessage(message: unknown, param: string): ChatMessage {
  if (!isObject(message)) throw gatewayErrors.invalidParameter({ param, why: 'it must be an object' });
  if (!hasRole(message))
    throw gatewayErrors.invalidParameter({ param: `${param}.role`, why: `it must be one of ${[...roles].join(', ')}` });
  const content = message['content'];
  if (Array.isArray(content)) content.forEach((part, index) => checkPart(part, `${param}.content[${index}]`));
  else if (content !== undefined && content !== null && typeof content !== 'string')
    throw gatewayErrors.invalidParameter({ param: `${param}.content`, why: 'it must be a string or a list of parts' });
  else if (typeof content !== 'string' && message.role !== 'assistant')
    throw gatewayErrors.missingParameter({ param: `${param}.content` });
  return message;
}

function hasRole(message: JsonObject): message is ChatMessage {
  return typeof message['role'] === 'string' && roles.has(message['role']);
}

function checkPart(part: unknown, param: string): void {
  if (!isObject(part)) throw gatewayErrors.invalidParameter({ param, why: 'it must be an object' });
  for (const key in part) if (key.endsWith('_url')) checkAddress(part[key], `${param}.${key}`);
}

/** An engine would fetch any address it is given, also a private one: only data that came with the request is allowed. */
function checkAddress(value: unknown, param: string): void {
  const address = isObject(value) ? value['url'] : value;
  if (typeof address === 'string' && address.startsWith('data:')) return;
  throw gatewayErrors.unsupportedParameter({ param, why: 'addresses are not fetched; send the data itself' });
}
