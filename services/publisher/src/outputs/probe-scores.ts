// Reads the probes of a version's manifest and has an engine score them, under the candidate and, where the manifest does
// not say, under the base.
import { createEngineClient, engineDialects, type EngineClient } from '@backtalk/dialects';
import { isBacktalkError, type BlobStore, type Clock } from '@backtalk/kit';
import { WeightsManifest, type Probe } from '@backtalk/proto/weights';
import { publisherErrors } from '../errors.js';
import type { LeasedEngine } from './loaders.js';

export interface ProbeScores {
  readonly candidate: readonly (readonly number[])[];
  readonly base: readonly (readonly number[])[];
}

/** To be closed by the caller. */
export function clientFor({ engine: { url, dialect: spoken } }: LeasedEngine, apiKey: string): EngineClient {
  return createEngineClient({ url, dialect: engineDialects.find((name) => name === spoken) ?? 'vllm', apiKey });
}

/** One of the calls that have until then together. */
export function callUntil(endsMs: number, clock: Clock, signal: AbortSignal) {
  return { deadlineMs: Math.max(1, endsMs - clock.now()), signal };
}

export class ProbeScorer {
  private readonly stopping = new AbortController();

  constructor(
    private readonly blobs: BlobStore,
    private readonly apiKey: string,
    /** Of all that is scored of one candidate. */
    private readonly deadlineMs: number,
    private readonly clock: Clock,
  ) {}

  async manifest(version: string, digest: string): Promise<WeightsManifest> {
    try {
      return WeightsManifest.decode(await this.blobs.get(digest));
    } catch (error) {
      // Missing bytes may come; broken ones stay broken.
      if (isBacktalkError(error) && error.retry !== 'never') throw error;
      throw publisherErrors.manifestInvalid({ version }, error);
    }
  }

  async score(leased: LeasedEngine, version: string, probes: readonly Probe[]): Promise<ProbeScores> {
    const client = clientFor(leased, this.apiKey);
    const endsMs = this.clock.now() + this.deadlineMs;
    const ask = (model: string) =>
      client.score(probes, { model, ...callUntil(endsMs, this.clock, this.stopping.signal) });
    try {
      const candidate = await ask(version);
      const known = probes.every(({ answerIds, baseLogprobs }) => baseLogprobs.length === answerIds.length);
      const base = known ? probes.map(({ baseLogprobs }) => baseLogprobs) : await ask(leased.engine.baseModel);
      return { candidate, base };
    } finally {
      await client.close();
    }
  }

  stop(): void {
    this.stopping.abort();
  }
}
