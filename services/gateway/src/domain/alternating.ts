// Which messages say the same, in an order that the chat templates of open models take?
//
// In: messages of the chat API, as another API's were read. Out: the same with one system message, at the head, and with one
// message where a person's follow each other. What a client says to the model in the midst stands with the message before it,
// or after the results of calls that wait for them, marked as no person's words. Pure.
import { isJsonObject, type JsonObject } from '@backtalk/kit/pure';

/** As agents mark what they put into a person's message themselves. */
const marks = /<\/?system-reminder>/g;

export function alternating(messages: readonly JsonObject[]): JsonObject[] {
  const order = new Order();
  for (const message of messages) order.add(message);
  return order.messages();
}

class Order {
  private readonly told: string[] = [];
  private readonly said: JsonObject[] = [];
  /** Of the person's message that is the last. */
  private parts: unknown[] | undefined;
  /** What a client said while calls had no results yet. */
  private waiting: unknown[] = [];

  add(message: JsonObject): void {
    const { role, content } = message;
    const words = role === 'system' || role === 'developer' ? wordsOf(content) : undefined;
    if (words !== undefined) return this.remind(words);
    // A result comes before what waits for it.
    if (role !== 'tool') this.say(this.waiting.splice(0));
    if (role === 'user') return this.say(partsOf(content));
    this.parts = undefined;
    this.said.push(message);
  }

  messages(): JsonObject[] {
    this.say(this.waiting.splice(0));
    const instructions = this.told.filter((words) => words !== '').join('\n\n');
    const said = this.said.map(plain);
    return instructions === '' ? said : [{ role: 'system', content: instructions }, ...said];
  }

  private remind(words: string): void {
    if (this.said.length === 0) {
      this.told.push(words);
      return;
    }
    const bare = words.replaceAll(marks, '').trim();
    if (bare === '') return;
    const reminder = { type: 'text', text: `<system-reminder>\n${bare}\n</system-reminder>` };
    const last = this.said.at(-1);
    if (last?.['tool_calls'] === undefined) this.say([reminder]);
    else this.waiting.push(reminder);
  }

  private say(parts: readonly unknown[]): void {
    if (parts.length === 0) return;
    if (this.parts === undefined) {
      this.parts = [];
      this.said.push({ role: 'user', content: this.parts });
    }
    this.parts.push(...parts);
  }
}

/** Undefined where there is more than words. */
function wordsOf(content: unknown): string | undefined {
  const parts = partsOf(content);
  const texts = parts.flatMap((part) => (isJsonObject(part) && part['type'] === 'text' ? [String(part['text'])] : []));
  return texts.length === parts.length ? texts.join('\n\n') : undefined;
}

function partsOf(content: unknown): readonly unknown[] {
  if (Array.isArray(content)) return content;
  return typeof content === 'string' && content !== '' ? [{ type: 'text', text: content }] : [];
}

/** Words that come in one part are words: templates of open models render lists otherwise, or not at all. */
export function plain(given: JsonObject): JsonObject {
  const { content } = given;
  if (!Array.isArray(content) || content.length !== 1) return given;
  const only: unknown = content[0];
  return isJsonObject(only) && only['type'] === 'text' ? { ...given, content: only['text'] } : given;
}
