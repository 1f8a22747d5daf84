// What it means that a loader could not prepare a version, or that its engine could not score it. Pure.
//
// A refusal (`never`) is about the weights themselves and burns the version; anything else is about that loader or its
// engine. One that could not prepare is left out and catches up from the load set; the version is decided later.
import type { BacktalkError } from '@backtalk/kit';

/** Refusals that say nothing about the weights: an engine may have restarted since it held them. */
const aboutTheLoader: ReadonlySet<string> = new Set([
  'policy_unknown',
  'peer_refused',
  'model_not_found',
  'engine_unsupported',
  'request_aborted',
]);

export function burnsVersion(error: BacktalkError): boolean {
  return error.retry === 'never' && !aboutTheLoader.has(error.code);
}
