// How many bytes does the log take for a request, with all that follows from it?
//
// In: what is stored of it. Out: bytes, for the share of its key and tenant: about as many as are stored, or more. What
// compresses well comes back at full length as the next state of the turn before, which the collector writes. Pure.
import { nextStateBounds } from '@backtalk/kit';
import type { Conversation } from '@backtalk/proto/facts';
import type { WrittenConversation } from './conversation.js';
import { openedBytesLeast, type Turn } from './turn.js';

/** The subject, headers, ids and place of any fact. */
export const factBytesLeast = openedBytesLeast;
/** A turn that is continued is judged, and may be taken into a batch. */
const factsOfContinued = 3;
/** Of a text in a list, beside its own. */
const textBytes = 2;

type Kept = Pick<Conversation, 'messages' | 'tools' | 'templateArguments'>;

export function requestBytes(
  { answerKeys, consent }: Pick<Turn, 'answerKeys' | 'consent'>,
  { messages, tools, templateArguments }: Kept,
  { newBytes }: Pick<WrittenConversation, 'newBytes'>,
): number {
  const keys = answerKeys.reduce((sum, key) => sum + textBytes + key.length, 0);
  const own = factBytesLeast + messages.length + tools.length + templateArguments.length + keys;
  const withheld = consent.train ? 0 : factBytesLeast;
  // Without an earlier answer it continues nothing.
  const continued =
    answerKeys.length === 0 ? 0 : factsOfContinued * factBytesLeast + Math.min(newBytes, nextStateBounds.bytesMax);
  return own + withheld + continued;
}
