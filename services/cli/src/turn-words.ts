// What was said in a turn: the question, the answer, and what came after it. In: ids. Out: words, empty where the log has none.
import { isBacktalkError, TurnLog, type FactReader, type TurnIds } from '@backtalk/kit';
import { Provenance } from '@backtalk/proto/facts';
import { conversationOf, lastUserText } from './conversation.js';

export interface TurnWords {
  readonly question: string;
  readonly answer: string;
  readonly nextState: string;
  /** What the person did in place of saying anything. */
  readonly act: string;
}

/** One that cannot be decoded is named by `dead-letters`; here it is as if it were not there. */
export async function ifReadable<T>(fact: Promise<T>): Promise<T | undefined> {
  return fact.catch((error: unknown) => {
    if (isBacktalkError(error, 'fact_undecodable')) return undefined;
    throw error;
  });
}

export async function turnWords(reader: FactReader, { tenant, user, turn }: TurnIds): Promise<TurnWords> {
  const ids = { tenant, user, turn };
  const log = new TurnLog(reader);
  const [opened, completed, continued] = await Promise.all([
    ifReadable(log.opened(ids)),
    ifReadable(log.completed(ids)),
    ifReadable(log.continued(ids)),
  ]);
  const conversation = opened === undefined ? undefined : await conversationOf(log, opened.message);
  return {
    question: conversation === undefined ? '' : lastUserText(conversation.messages),
    answer: completed?.message.text ?? '',
    nextState: (continued?.message.nextState ?? [])
      .filter(({ provenance }) => provenance !== Provenance.PROVENANCE_CLIENT)
      .map(({ text }) => text)
      .join(' · '),
    act: continued?.message.act ?? '',
  };
}

const cut = (text: string, length: number) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

export const oneLine = (text: string) => cut(text.replaceAll('\n', ' '), 100);
