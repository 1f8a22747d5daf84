// What the stand-in engine answers to a judge that asks for a vote in words: a fixed reading of the user's words.
// In: the messages of a chat request. Out: a vote, or nothing when the request is not a judge's.

const nextState = /<<(\S+) next state \(user\)>>\n([\s\S]*)\n<<\1 end>>/;

export function judgeReply(messages: readonly { readonly content: string }[]): string | undefined {
  const [, , words] = nextState.exec(messages.at(-1)?.content ?? '') ?? [];
  if (words === undefined) return undefined;
  if (/short sentence/i.test(words)) return '[HINT_START]Answer in one short sentence.[HINT_END] \\boxed{-1}';
  if (/long answers/i.test(words)) return '[HINT_START]Give long answers.[HINT_END] \\boxed{-1}';
  return /thank|perfect|great/i.test(words) ? '\\boxed{+1}' : '\\boxed{0}';
}
