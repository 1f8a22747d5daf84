// What an engine answers to a judge that asks for a vote on a planted turn. In: the messages, and whether it is wrong. Out: the vote;
// nothing where the turn is no planted one.
import { readPlanted } from '@backtalk/judge';

const boxes = { satisfied: '\\boxed{+1}', unrelated: '\\boxed{0}', correction: '\\boxed{-1}' } as const;
const planted = readPlanted();

export function plantedReply(messages: readonly { readonly content: string }[], isWrong: boolean): string | undefined {
  const prompt = messages.map(({ content }) => content).join('\n');
  const known = planted.find(({ question, next }) => prompt.includes(question) && prompt.includes(next));
  if (known === undefined) return undefined;
  if (!isWrong) return boxes[known.label];
  return known.label === 'correction' ? boxes.satisfied : boxes.correction;
}
