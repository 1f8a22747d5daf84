// What of a text in the role of a user a person wrote, and which message of a request is the last that one wrote. Agents put
// stamps before it, runtime lines and context behind it, and send messages of their own in the same role. It goes by form alone:
// marks that close what they open, names that are compounds, brackets with a time. In: texts and messages of requests. Out: the
// person's words, empty where a client or a tool wrote all of it. Work grows with the text's length and no faster. Pure.
import { isJsonObject } from '../json/json-object.js';
import { clip } from './clip.js';
import { withoutMachineBlocks } from './machine-blocks.js';

/** Of a text that is longer, head and tail are read: a person's words stand at either end of what clients put around them. */
const charactersMax = 32_768;
/** Of messages of users, so much is searched for the last that a person wrote. */
const searchedCharactersMax = 1_048_576;
/** What says that all of a text is a client's stands in so much of it. */
const headCharacters = 1_024;

/** All of the text is the client's; each shows at its head. */
const clientShapes: readonly RegExp[] = [
  /^\[(?:context|system|memory|automated|internal|request interrupted|suggestion mode)\b[^\]]{0,400}\]/i,
  /^\[[^\]\n]{1,200}\]$/,
  /^(?:current (?:date|time)|today's date)\b[^\n]{0,80}$/i,
  /^read heartbeat\.md\b/i,
  /^heartbeat(?:_ok)?$/i,
  /^pre-compaction memory flush\b/i,
  /^# \S{1,80} instructions for [^\n]{1,300}$/i,
  // Claude Code and Codex, once they have replaced a long conversation by a summary.
  /^this session is being continued from a previous conversation\b/i,
  /^another language model started to solve this problem and produced a summary\b/i,
];

/** What a person said while their agent worked, as Claude Code passes it on. */
const passedOn =
  /^The user sent (?:a )?new messages? while you were working:\n([^]*?)(?:\n\nThis is how Claude Code surfaces messages\b[^]*)?$/;

/** "Observation:", "Tool output:", "[read_file for 'a.txt'] Result:". */
const observed =
  /^(?:observations?|(?:tool|function|command|execution) (?:results?|outputs?|responses?)|\[[\w-]{1,60}(?: for [^\]\n]{1,300})?\] results?) ?:/i;

/** A date or a time in brackets, and a word: "[Sun 2026-11-22 11:28 UTC]", "[Telegram Ann 2026-01-02 12:00]". */
const stamp = /^\[[^\]\n]{0,160}(?:\d{4}-\d\d-\d\d|\d{1,2}:\d\d)[^\]\n]{0,60}\][^\S\n]*/;
const stampWord = /[a-z]{3}/i;
/** A line of a log has these, and no person's message does. */
const level = /\b(?:trace|debug|info|warn|warning|error|fatal)\b/i;
const stampsMax = 3;

/** "Runtime: agent=main | host=a", "[message_id: 7]". */
const tailLines: readonly RegExp[] = [
  /^[A-Z][\w -]{0,40}: ?[\w.-]{1,60}=[^|]{0,400}\|.{0,2000}$/,
  /^\[[a-z][\w -]{0,40}[:=][^\]]{1,200}\]$/,
];
const tailLinesMax = 3;

/** A command of Claude Code's: what a person typed behind its name is theirs. */
const command = /^<command-(?:name|message)>/;
const commandArguments = /<command-args>([^]*?)<\/command-args>/;

/** Clients that wrap a person's words name the wrapping so: "user_query", "userRequest", "task". */
const wrapper = /^<([a-z][\w-]{2,40})>/i;
const ofPerson =
  /(?:^|[_-])(?:query|message|request|prompt|task|question|feedback)$|[a-z](?:Query|Message|Request|Prompt|Task|Question|Feedback)$/;

export function personWords(text: string): string {
  const read = clip(text, charactersMax).trim();
  if (command.test(read)) return commandArguments.exec(read)?.[1]?.trim() ?? '';
  const whole = withoutMachineBlocks(read).trim();
  const bare = unwrapped(passedOn.exec(whole)?.[1]?.trim() ?? whole);
  const words = withoutStamps(withoutTail(bare));
  return isClients(words) ? '' : words;
}

/** What a tool or an environment said, sent in the role of a user. */
export function isObservation(text: string): boolean {
  return observed.test(text.trimStart().slice(0, headCharacters));
}

/**
 * Which message of a request a person wrote last.
 *
 * @returns an index in the messages; -1 where no person wrote any
 */
export function lastHumanMessage(messages: readonly unknown[]): number {
  let left = searchedCharactersMax;
  return messages.findLastIndex((message) => {
    if (left <= 0 || !isJsonObject(message) || message['role'] !== 'user') return false;
    const texts = textsIn(message['content']);
    left -= texts.reduce((sum, text) => sum + text.length, 0);
    return wordsOf(texts) !== '';
  });
}

/** A person's words in a message's content, which is a text, or parts of which some have one. */
export function wordsIn(content: unknown): string {
  return wordsOf(textsIn(content));
}

/** A message's content is a text, or parts of which some have one. */
export function textsIn(content: unknown): string[] {
  const parts: readonly unknown[] = Array.isArray(content) ? content : [{ text: content }];
  return parts.flatMap((part) => (isJsonObject(part) && typeof part['text'] === 'string' ? [part['text']] : []));
}

function wordsOf(texts: readonly string[]): string {
  return texts
    .filter((text) => !isObservation(text))
    .map((text) => personWords(text))
    .filter((words) => words !== '')
    .join('\n');
}

function isClients(words: string): boolean {
  const head = clip(words, headCharacters);
  return clientShapes.some((shape) => shape.test(head));
}

/** Only where nothing stands outside of it: in the midst of other words it is something that was pasted. */
function unwrapped(text: string): string {
  const [open = '', name = ''] = wrapper.exec(text) ?? [];
  const close = `</${name}>`;
  if (name === '' || !ofPerson.test(name) || !text.endsWith(close)) return text;
  const inner = text.slice(open.length, -close.length);
  return inner.includes(close) ? text : inner.trim();
}

function withoutStamps(text: string): string {
  let words = text;
  for (let at = 0; at < stampsMax; at += 1) {
    const [found = ''] = stamp.exec(words) ?? [];
    if (found === '' || !stampWord.test(found) || level.test(found)) return words;
    const rest = words.slice(found.length).trimStart();
    // Lines that all begin so are a log.
    if (rest.includes('\n[')) return words;
    words = rest;
  }
  return words;
}

function withoutTail(text: string): string {
  let words = text;
  for (let at = 0; at < tailLinesMax; at += 1) {
    const start = words.lastIndexOf('\n') + 1;
    const line = words.slice(start);
    if (!tailLines.some((tail) => tail.test(line))) return words;
    words = words.slice(0, start).trimEnd();
  }
  return words;
}

/** They part the turns of a conversation: a text with one would end its own turn in a prompt, and begin one in another's name. */
const template =
  /<[|\uFF5C][^|\uFF5C<>\n]{1,60}[|\uFF5C]>|<\/?s>|<<\/?SYS>>|\[\/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\]|<\/?(?:bos|eos|pad|unk|start_of_turn|end_of_turn|tool_call|tool_response|think)>/iu;

/** The first token of a chat template that a text quotes; nothing where it quotes none. */
export function templateTokenIn(text: string): string | undefined {
  return template.exec(text)?.[0];
}
