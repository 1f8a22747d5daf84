// Establishes whether a request's turn may be trained on, from the index and, where that has forgotten, from the log; and
// keeps a "no" in the log, where it lies as long as the turns that follow from it.
import type { Consent, TurnOpened } from '@backtalk/proto/facts';
import { consentAfter, decidesItself, ownConsent, trainsBy, type Trains } from '../domain/consent.js';
import type { TurnEntry } from '../domain/placement.js';
import type { OpenedTurn } from '../outputs/collector-log.js';
import type { LinkParts } from './link-turn.js';

/** A session whose own turns say no is noted in the log this often, so that its note is as young as its turns. */
const notedForMs = 24 * 60 * 60 * 1000;

/** @param parent what the request continues, or seems to; nothing where that cannot be found */
export async function establishConsent(
  { index, log }: LinkParts,
  request: TurnOpened,
  parent: TurnEntry | undefined,
): Promise<Consent> {
  const own = ownConsent(request);
  if (decidesItself(own)) return own;
  const { tenant, user, declaredSession, provisionalSession, provisionalParent, answerKeys } = request;
  const owner = { tenant, user };
  const before = async (): Promise<Trains | 'none' | undefined> => {
    // Its answer is known and its request is not, so nothing says that it may.
    if (parent !== undefined) return parent.consent ?? 'unknown';
    if (provisionalParent !== '')
      return (await index.turn(provisionalParent))?.consent ?? log.trains(owner, provisionalParent);
    return answerKeys.length === 0 ? 'none' : undefined;
  };
  const session = async (): Promise<Trains | undefined> => {
    if (declaredSession === '') return undefined;
    const { consent } = await index.sessionConsent(provisionalSession);
    return consent ?? ((await log.saidNo({ tenant, user, session: provisionalSession })) ? 'no' : 'yes');
  };
  const [parentTrains, sessionTrains] = await Promise.all([before(), session()]);
  const saidNo = parentTrains === undefined && (await log.saidNo(owner));
  return consentAfter(own, { parent: parentTrains, session: sessionTrains, saidNo });
}

/** Stores the "no" before anything follows from it. */
export async function keepConsent(
  { index, log, events }: LinkParts,
  { message: request, sequence, timeMs, trace }: OpenedTurn,
  session: string,
  consent: Consent,
): Promise<void> {
  if (!consent.train) {
    const { turn, tenant, user } = request;
    const saysSo = !ownConsent(request).train;
    const { notedMs } = await index.sessionConsent(session);
    if (!saysSo || timeMs - notedMs > notedForMs) {
      await log.publishWithheld({ turn, tenant, user, session, source: consent.source }, trace);
      await index.putNoted(session, timeMs);
    }
    events.withheld(consent.source);
  }
  for (const one of new Set([session, request.provisionalSession])) {
    // One that is linked late says nothing of what was said since.
    if (one !== '' && (await index.sessionConsent(one)).sequence <= sequence)
      await index.putConsent(one, trainsBy(consent), sequence);
  }
}
