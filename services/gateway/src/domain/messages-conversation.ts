// Which chat messages say what those of Anthropic's Messages API say?
//
// In: a system prompt, and messages of blocks. Out: messages of the chat API, in new objects. What a client says to the model
// in the midst of a conversation stands with the message before it, marked as no person's words, since templates know one
// system message, at the head. Messages of one role that follow each other are one. Pure.
import { isJsonObject, type JsonObject } from '@backtalk/kit/pure';

/** Blocks of a content, which may be a text. */
export function blocksOf(content: unknown): JsonObject[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return Array.isArray(content) ? content.filter(isJsonObject) : [];
}

/** The line by which Claude Code names its build changes with each, and says nothing to a model. */
const billing = /^x-anthropic-billing-header:[^\n]*\n*/i;

export function chatMessages(system: unknown, messages: readonly JsonObject[]): JsonObject[] {
  const told = blocksOf(system).map(({ text }) => String(text).replace(billing, ''));
  const conversation = new Conversation(told);
  for (const { role, content } of messages) {
    const blocks = blocksOf(content);
    if (role === 'assistant') conversation.answer(blocks);
    else if (role === 'system') conversation.remind(blocks);
    else conversation.ask(blocks);
  }
  return conversation.messages();
}

interface Answer {
  text: string;
  thought: string;
  readonly calls: JsonObject[];
}

type Written =
  | { readonly role: 'user'; readonly parts: JsonObject[] }
  | { readonly role: 'assistant'; readonly answer: Answer }
  | { readonly role: 'tool'; readonly message: JsonObject };

class Conversation {
  private readonly written: Written[] = [];
  /** What a client said while calls had no results yet. */
  private waiting: JsonObject[] = [];

  constructor(private readonly told: string[]) {}

  answer(blocks: readonly JsonObject[]): void {
    this.say(this.waiting.splice(0));
    const last = this.written.at(-1);
    const answer = last?.role === 'assistant' ? last.answer : { text: '', thought: '', calls: [] };
    for (const { type, text, thinking, content, ...call } of blocks) {
      const words = type === 'compaction' ? content : text;
      if ((type === 'text' || type === 'compaction') && typeof words === 'string') answer.text += words;
      else if (type === 'thinking') answer.thought += String(thinking);
      else if (type === 'tool_use') answer.calls.push(calledAs(call));
    }
    // A thought alone, as of an answer that was cut off, is nothing that was said.
    const isSaid = answer.text !== '' || answer.calls.length > 0;
    if (isSaid && last?.role !== 'assistant') this.written.push({ role: 'assistant', answer });
  }

  ask(blocks: readonly JsonObject[]): void {
    for (const block of blocks)
      if (block['type'] === 'tool_result') this.written.push({ role: 'tool', message: resultOf(block) });
    this.say(this.waiting.splice(0));
    this.say(blocks.flatMap((block) => partsOf(block)));
  }

  remind(blocks: readonly JsonObject[]): void {
    const words = wordsOf(blocks, '\n\n').replaceAll(marks, '').trim();
    if (words === '') return;
    const last = this.written.at(-1);
    const reminder = { type: 'text', text: `<system-reminder>\n${words}\n</system-reminder>` };
    if (last === undefined) this.told.push(words);
    else if (last.role === 'assistant' && last.answer.calls.length > 0) this.waiting.push(reminder);
    else this.say([reminder]);
  }

  messages(): JsonObject[] {
    this.say(this.waiting.splice(0));
    const instructions = this.told.filter(isText).join('\n\n');
    const said = this.written.map((one) => {
      if (one.role === 'tool') return one.message;
      return one.role === 'assistant' ? answerOf(one.answer) : plain({ role: 'user', content: one.parts });
    });
    return instructions === '' ? said : [{ role: 'system', content: instructions }, ...said];
  }

  private say(parts: readonly JsonObject[]): void {
    if (parts.length === 0) return;
    const last = this.written.at(-1);
    if (last?.role === 'user') last.parts.push(...parts);
    else this.written.push({ role: 'user', parts: [...parts] });
  }
}

/** As agents mark what they put into a person's message themselves. */
const marks = /<\/?system-reminder>/g;

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

/** Words that come in one part are words: templates of open models render lists otherwise, or not at all. */
function plain(given: JsonObject): JsonObject {
  const { content } = given;
  if (!Array.isArray(content) || content.length !== 1) return given;
  const only: unknown = content[0];
  return isJsonObject(only) && only['type'] === 'text' ? { ...given, content: only['text'] } : given;
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
