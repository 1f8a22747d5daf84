// What does an answer that was given before say, as a message of the chat API?
//
// In: the fact of a turn's end. Out: its message, as a client that sends whole conversations would send it; none where it said
// nothing, as one that broke off before its first word. Pure.
import type { JsonObject } from '@backtalk/kit/pure';
import type { TurnCompleted } from '@backtalk/proto/facts';

export function earlierAnswer({
  text,
  reasoning,
  toolCalls,
}: Pick<TurnCompleted, 'text' | 'reasoning' | 'toolCalls'>): readonly JsonObject[] {
  const calls: unknown = toolCalls.byteLength === 0 ? [] : JSON.parse(Buffer.from(toolCalls).toString('utf8'));
  const called = Array.isArray(calls) && calls.length > 0;
  if (text === '' && !called) return [];
  const thought = reasoning === '' ? {} : { reasoning, reasoning_content: reasoning };
  const said = text === '' ? null : text;
  return [{ role: 'assistant', content: said, ...thought, ...(called ? { tool_calls: calls } : {}) }];
}
