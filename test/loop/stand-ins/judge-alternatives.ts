// What the stand-in engine answers to a judge that asks for the logprobs of labels: a fixed reading of the user's words.
// In: the judge's prompt. Out: logprobs by token text, or nothing when the prompt is not a judge's.

export function judgeAlternatives(_prompt: string): Readonly<Record<string, number>> | undefined {
  return undefined;
}
