// Refuses what is nothing but a fact for the log, where the share of the log of its key or tenant is full.
import { gatewayErrors } from '../errors.js';
import type { Caller } from '../domain/caller.js';
import type { CaptureShare } from '../outputs/capture-share.js';

export function refusePastShare(shares: CaptureShare, caller: Caller): void {
  const full = shares.fullOf(caller);
  if (full !== undefined)
    throw gatewayErrors.rateLimited({
      what: `${full === 'key' ? 'its own' : "its tenant's"} share of the log today`,
      retryAfterSeconds: shares.secondsToNextDay(),
    });
}
