// Has an engine score a manifest's probes, under the candidate and, where the manifest does not say, under the base.
import { createEngineClient, engineDialects, type EngineClient, type EngineDialect } from '@backtalk/dialects';
import type { Probe } from '@backtalk/proto/weights';
import type { LeasedEngine } from './loaders.js';

export interface ProbeScores {
  readonly candidate: readonly (readonly number[])[];
  readonly base: readonly (readonly number[])[];
}

export class ProbeScorer {
  private readonly stopping = new AbortController();

  constructor(
    private readonly apiKey: string,
    private readonly deadlineMs: number,
  ) {}

  async score(loader: LeasedEngine, version: string, probes: readonly Probe[]): Promise<ProbeScores> {
    const { url, dialect, baseModel } = loader.engine;
    const client = createEngineClient({ url, dialect: dialectOf(dialect), apiKey: this.apiKey });
    try {
      const candidate = await this.ask(client, version, probes);
      const known = probes.every(({ answerIds, baseLogprobs }) => baseLogprobs.length === answerIds.length);
      const base = known ? probes.map(({ baseLogprobs }) => baseLogprobs) : await this.ask(client, baseModel, probes);
      return { candidate, base };
    } finally {
      await client.close();
    }
  }

  stop(): void {
    this.stopping.abort();
  }

  private ask(client: EngineClient, model: string, probes: readonly Probe[]): Promise<number[][]> {
    return client.score(probes, { model, deadlineMs: this.deadlineMs, signal: this.stopping.signal });
  }
}

function dialectOf(name: string): EngineDialect {
  return engineDialects.find((dialect) => dialect === name) ?? 'vllm';
}
