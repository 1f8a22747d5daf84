// Is this feedback, and what does it say?
//
// In: a parsed JSON body. Out: the turn and the words about it, with a digest that makes the same feedback given twice
// one fact; or a refusal that names the parameter. Pure.
import { sha256Hex } from '@backtalk/kit';
import type { FeedbackGiven } from '@backtalk/proto/facts';
import { gatewayErrors } from '../errors.js';
import { isObject, type JsonObject } from './json-shape.js';

export interface Feedback {
  readonly turn: string;
  readonly score: -1 | 0 | 1 | undefined;
  readonly comment: string;
  readonly correction: string;
}

export const feedbackCharactersMax = 16 * 1024;

export function readFeedback(value: unknown): Feedback {
  if (!isObject(value)) throw gatewayErrors.invalidJson({ why: 'it is not an object' });
  const feedback = {
    turn: turnOf(value),
    score: scoreOf(value['score']),
    comment: words(value, 'comment'),
    correction: words(value, 'correction'),
  };
  if (feedback.score === undefined && feedback.comment === '' && feedback.correction === '')
    throw gatewayErrors.missingParameter({ param: 'score' });
  return feedback;
}

export function feedbackFact(
  feedback: Feedback,
  of: { readonly tenant: string; readonly user: string; readonly policy: string },
): FeedbackGiven {
  return {
    turn: feedback.turn,
    tenant: of.tenant,
    user: of.user,
    policy: of.policy,
    score: feedback.score ?? 0,
    hasScore: feedback.score !== undefined,
    comment: feedback.comment,
    correction: feedback.correction,
    digest: sha256Hex(JSON.stringify([feedback.score ?? null, feedback.comment, feedback.correction])),
  };
}

function turnOf(body: JsonObject): string {
  const turn = body['turn_id'] ?? body['id'];
  if (turn === undefined || turn === null) throw gatewayErrors.missingParameter({ param: 'turn_id' });
  if (typeof turn !== 'string') throw gatewayErrors.invalidParameter({ param: 'turn_id', why: 'it must be a string' });
  if (!/^[A-Za-z0-9_-]{1,128}$/.test(turn)) throw gatewayErrors.unknownTurn({ param: 'turn_id' });
  return turn;
}

function scoreOf(score: unknown): -1 | 0 | 1 | undefined {
  if (score === undefined || score === null) return undefined;
  if (score === -1 || score === 0 || score === 1) return score;
  throw gatewayErrors.invalidParameter({ param: 'score', why: 'it must be -1, 0 or 1' });
}

function words(body: JsonObject, param: string): string {
  const value = body[param];
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw gatewayErrors.invalidParameter({ param, why: 'it must be a string' });
  if (value.length > feedbackCharactersMax)
    throw gatewayErrors.invalidParameter({ param, why: `it must have at most ${feedbackCharactersMax} characters` });
  return value;
}
