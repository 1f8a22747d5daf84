// The fake engine's language model: pure functions in place of weights.
//
// In: a weights digest and token ids. Out: tokens and logprobs that are always the same for the same input, close to
// the base's for an adapter, and consistent between generating an answer and scoring it.

export interface FakeToken {
  readonly id: number;
  readonly text: string;
}

/** The digest that stands for the base model's weights. */
export const baseDigest = 'base';

export const endToken: FakeToken = { id: 2, text: '' };
const startId = 1;
const roleIds: Readonly<Record<string, number>> = { system: 10, user: 11, assistant: 12, tool: 13 };
const otherRoleId = 14;
const firstWordId = 100;
const firstHashedId = 1_000;
const hashedIds = 30_000;
const contextTokens = 3;
const onTopicLogprob = -0.05;
const driftScale = 0.04;

const words = (
  'the a quiet river runs past old stone houses where people talk about weather bread music and long journeys ' +
  'they remember small things like light on water or names of birds that come back each spring when days grow warm'
)
  .split(' ')
  .map((word, at): FakeToken => ({ id: firstWordId + at, text: ` ${word}` }));

const wordIds = new Map(words.map(({ id, text }) => [text.trim(), id]));

/** Splits text into tokens: a word with the white space before it is one. */
export function tokensOf(text: string): FakeToken[] {
  return (text.match(/\s*\S+|\s+$/g) ?? []).map((piece) => ({ id: idOf(piece), text: piece }));
}

export interface FakeMessage {
  readonly role: string;
  readonly content: string;
}

/** The chat template. */
export function templateIds(messages: readonly FakeMessage[], addGenerationPrompt = true): number[] {
  const ids = [startId];
  for (const { role, content } of messages) {
    ids.push(roleIds[role] ?? otherRoleId);
    for (const { id } of tokensOf(content)) ids.push(id);
    ids.push(endToken.id);
  }
  if (addGenerationPrompt) ids.push(otherRoleId);
  return ids;
}

/** An answer of `length` tokens, the last of them the end token. Its first word follows from the question's last. */
export function generate(digest: string, promptIds: readonly number[], seed: number, length: number): FakeToken[] {
  const answer: FakeToken[] = [topicOf(promptIds.at(-contextTokens))].slice(0, length - 1);
  let state = hash(hashText(digest), [seed, promptIds.length, ...promptIds.slice(-16)]);
  for (let at = answer.length; at < length - 1; at += 1) {
    state = hash(state, [at]);
    answer.push(words[state % words.length] ?? endToken);
  }
  return [...answer, endToken];
}

/** Logprobs of an answer's ids after a prompt, under the weights of a digest. */
export function fakeLogprobs(digest: string, promptIds: readonly number[], answerIds: readonly number[]): number[] {
  const ids = [...promptIds.slice(-contextTokens), ...answerIds];
  const first = ids.length - answerIds.length;
  const drift = digest === baseDigest ? undefined : hashText(digest);
  return answerIds.map((_, at) => logprobAt(ids, first + at, drift));
}

function logprobAt(ids: readonly number[], at: number, drift: number | undefined): number {
  const window = ids.slice(Math.max(0, at - contextTokens), at + 1);
  const [lastOfQuestion, , opens, first] = window;
  const isOnTopic = opens === otherRoleId && first === topicOf(lastOfQuestion).id;
  const base = isOnTopic ? onTopicLogprob : -0.1 - (hash(7, window) % 2_500) / 1_000;
  if (drift === undefined) return base;
  return base + driftScale * ((hash(drift, window) % 1_000) / 1_000 - 0.5);
}

/** The word with which an answer begins that is about a question. */
function topicOf(lastOfQuestion = 0): FakeToken {
  return words[hash(3, [lastOfQuestion]) % words.length] ?? endToken;
}

function idOf(piece: string): number {
  const word = piece.trim();
  return wordIds.get(word) ?? firstHashedId + (hashText(piece) % hashedIds);
}

function hash(seed: number, values: readonly number[]): number {
  let state = seed ^ 0x811c9dc5;
  for (const value of values) {
    state = Math.imul(state ^ (value & 0xffff), 0x01000193);
    state = Math.imul(state ^ (value >>> 16), 0x01000193);
    state ^= state >>> 13;
  }
  return state >>> 0;
}

function hashText(text: string): number {
  let state = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193);
  return state >>> 0;
}
