// Is this feedback, and what does it say?
//
// In: a parsed JSON body, the turn's owner, and who gives it with which consent. Out: the turn and the words about it,
// with a digest that makes the same feedback given twice one fact; or a refusal that names the parameter. Pure.
import { sha256Hex } from '@backtalk/kit';
import type { Consent, FeedbackGiven } from '@backtalk/proto/facts';
import { z } from 'zod';
import { gatewayErrors } from '../errors.js';
import { readAs } from './read-as.js';

export interface Feedback {
  readonly turn: string;
  readonly score: -1 | 0 | 1 | undefined;
  readonly comment: string;
  readonly correction: string;
  /** Who gives it, where the key speaks for several people. */
  readonly user: string | undefined;
}

export interface Given {
  /** The giver's keyed hash. */
  readonly giver: string;
  readonly consent: Consent;
}

const feedbackCharactersMax = 16 * 1024;

const words = z
  .string('it must be a string')
  .max(feedbackCharactersMax, `it must have at most ${feedbackCharactersMax} characters`)
  .nullish();
const turnId = z.string('it must be a string').nullish();
const schema = z.object({
  turn_id: turnId,
  /** The name that the id has in the answer. */
  id: turnId,
  score: z.literal([-1, 0, 1], 'it must be -1, 0 or 1').nullish(),
  comment: words,
  correction: words,
  user: z.string('it must be a string').nullish(),
});

export function readFeedback(body: unknown): Feedback {
  const { value } = readAs(schema, body);
  const turn = value.turn_id ?? value.id;
  if (turn === undefined || turn === null) throw gatewayErrors.missingParameter({ param: 'turn_id' });
  if (!/^[A-Za-z0-9_-]{1,128}$/.test(turn)) throw gatewayErrors.unknownTurn({ param: 'turn_id' });
  const score = value.score ?? undefined;
  const comment = value.comment ?? '';
  const correction = value.correction ?? '';
  if (score === undefined && comment === '' && correction === '')
    throw gatewayErrors.missingParameter({ param: 'score' });
  return { turn, score, comment, correction, user: value.user ?? undefined };
}

export function feedbackFact(
  feedback: Feedback,
  of: { readonly tenant: string; readonly user: string; readonly policy: string },
  { giver, consent }: Given,
): FeedbackGiven {
  const { turn, score, comment, correction } = feedback;
  // Equal words of two people are two voices; the owner's own are named as they always were.
  const voice = giver === of.user && consent.train ? [] : [giver, consent.train];
  return {
    turn,
    tenant: of.tenant,
    user: of.user,
    policy: of.policy,
    score: score ?? 0,
    hasScore: score !== undefined,
    comment,
    correction,
    digest: sha256Hex(JSON.stringify([score ?? null, comment, correction, ...voice])),
    giver,
    consent,
  };
}
