/**
 * What a loader's failure to prepare a version means. Pure.
 *
 * A refusal (`never`) is about the weights themselves and burns the version; anything else is about that loader, which
 * is left out and catches up from the load set.
 */
import type { BacktalkError } from '@backtalk/kit';

/** Refusals that say nothing about the weights. */
const aboutTheLoader: ReadonlySet<string> = new Set(['policy_unknown', 'peer_refused']);

export function burnsVersion(error: BacktalkError): boolean {
  return error.retry === 'never' && !aboutTheLoader.has(error.code);
}
