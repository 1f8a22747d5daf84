// Which chat messages say what those of Anthropic's Messages API say?
//
// In: a system prompt, and messages of blocks. Out: messages of the chat API, in new objects. Answers that follow each other are
// one. Pure.
import { isJsonObject, type JsonObject } from '@backtalk/kit/pure';
import { alternating, plain } from './alternating.js';

/** Blocks of a content, which may be a text. */
export function blocksOf(content: unknown): JsonObject[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return Array.isArray(content) ? content.filter(isJsonObject) : [];
}

/** The line by which Claude Code names its build changes with each, and says nothing to a model. */
const billing = /^x-anthropic-billing-header:[^\n]*\n*/i;

export function chatMessages(system: unknown, messages: readonly JsonObject[]): JsonObject[] {
  const told = blocksOf(system).map(({ text }) => ({ role: 'system', content: String(text).replace(billing, '') }));
  return alternating([...told, ...messagesIn(messages)]);
}

function messagesIn(messages: readonly JsonObject[]): JsonObject[] {
  const written: JsonObject[] = [];
  let answer: Answer | undefined;
  const close = (): void => {
    // A thought alone, as of an answer that was cut off, is nothing that was said.
    if (answer !== undefined && (answer.text !== '' || answer.calls.length > 0)) written.push(answerOf(answer));
    answer = undefined;
  };
  for (const { role, content } of messages) {
    const blocks = blocksOf(content);
    if (role === 'assistant') {
      answer ??= { text: '', thought: '', calls: [] };
      addTo(answer, blocks);
    } else {
      close();
      for (const block of blocks) if (block['type'] === 'tool_result') written.push(resultOf(block));
      const parts = blocks.flatMap((block) => partsOf(block));
      if (parts.length > 0) written.push({ role, content: parts });
    }
  }
  close();
  return written;
}

interface Answer {
  text: string;
  thought: string;
  readonly calls: JsonObject[];
}

function addTo(answer: Answer, blocks: readonly JsonObject[]): void {
  for (const { type, text, thinking, content, ...call } of blocks) {
    const words = type === 'compaction' ? content : text;
    if ((type === 'text' || type === 'compaction') && typeof words === 'string') answer.text += words;
    else if (type === 'thinking') answer.thought += String(thinking);
    else if (type === 'tool_use') answer.calls.push(calledAs(call));
  }
}

/** What a call's arguments are told as where a model wrote no object: what is written here comes back as it was. */
export const brokenInput = 'INVALID_JSON';

function calledAs({ id, name, input }: JsonObject): JsonObject {
  const [only, ...others] = isJsonObject(input) ? Object.entries(input) : [];
  const isBroken = only?.[0] === brokenInput && others.length === 0 && typeof only[1] === 'string';
  return { id, type: 'function', function: { name, arguments: isBroken ? only[1] : JSON.stringify(input) } };
}

function answerOf({ text, thought, calls }: Answer): JsonObject {
  return {
    role: 'assistant',
    content: text === '' ? null : text,
    // By both names that templates of open models know.
    ...(thought === '' ? {} : { reasoning: thought, reasoning_content: thought }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

function resultOf({ tool_use_id: id, content, is_error: isError }: JsonObject): JsonObject {
  const parts = blocksOf(content).flatMap((block) => partsOf(block));
  return plain({
    role: 'tool',
    tool_call_id: id,
    content: parts.length === 0 ? '' : parts,
    // Templates do not read it; who judges what came of the call does.
    ...(isError === true ? { is_error: true } : {}),
  });
}

function partsOf(block: JsonObject): JsonObject[] {
  const { type, text, source, content, title, tool_name: tool } = block;
  switch (type) {
    case 'text':
      return text === '' ? [] : [{ type, text }];
    case 'compaction':
      return isText(content) ? [{ type: 'text', text: content }] : [];
    case 'tool_reference':
      return [{ type: 'text', text: `Tool found: ${String(tool)}` }];
    case 'search_result':
      return [{ type: 'text', text: [title, source, wordsOf(blocksOf(content), '\n')].filter(isText).join('\n') }];
    case 'image':
    case 'document':
      return isJsonObject(source) ? sourceParts(type, source, title) : [];
    default:
      return [];
  }
}

function sourceParts(type: string, source: JsonObject, title: unknown): JsonObject[] {
  const { type: kind, data, media_type: mediaType, content } = source;
  if (kind === 'content') return blocksOf(content).flatMap((block) => partsOf(block));
  if (kind === 'text') return [{ type: 'text', text: data }];
  const url = `data:${String(mediaType)};base64,${String(data)}`;
  if (type === 'image') return [{ type: 'image_url', image_url: { url } }];
  return [{ type: 'file', file: { file_data: url, ...(isText(title) ? { filename: title } : {}) } }];
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function wordsOf(blocks: readonly JsonObject[], between: string): string {
  return blocks
    .map(({ text }) => text)
    .filter(isText)
    .join(between);
}
