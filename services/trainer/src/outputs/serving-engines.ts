// Engines that serve a base model, found by their loaders' leases. In: the base model and what is to be able. Out: their clients, for as long
// as the work takes.
import { createEngineClient, dialectNamed, type CapabilityName, type EngineClient } from '@backtalk/dialects';
import type { LeaseView } from '@backtalk/kit';

import { trainerErrors } from '../errors.js';

/** Asked one after the other, where the first does not answer. */
const enginesMax = 3;

export interface ServingEngine {
  readonly url: string;
  readonly client: EngineClient;
}

export class ServingEngines {
  constructor(
    private readonly leases: LeaseView,
    private readonly apiKey: string,
  ) {}

  stop(): void {
    this.leases.stop();
  }

  /** The base that engines with these capabilities serve; nothing where there is none. */
  base(...wanted: readonly CapabilityName[]): string | undefined {
    return this.able(wanted)[0]?.baseModel;
  }

  /**
   * Throws `renderer_away` where no engine can be asked: that says nothing about a batch.
   * @param version that they must have loaded beside the base, if any
   */
  async use<T>(
    baseModel: string,
    wanted: readonly CapabilityName[],
    work: (engines: readonly ServingEngine[]) => Promise<T>,
    version?: string,
  ): Promise<T> {
    const able = this.able(wanted).filter(
      (engine) => engine.baseModel === baseModel && (version === undefined || engine.versions.includes(version)),
    );
    if (able.length === 0) throw trainerErrors.rendererAway({ baseModel });
    const { apiKey } = this;
    const engines = able.slice(0, enginesMax).map(({ url, dialect }) => ({
      url,
      client: createEngineClient({ url, dialect: dialectNamed(dialect), apiKey }),
    }));
    try {
      return await work(engines);
    } finally {
      await Promise.all(engines.map(({ client }) => client.close()));
    }
  }

  private able(wanted: readonly CapabilityName[]) {
    return this.leases.current().flatMap(({ engine }) => {
      const isAble = engine?.ready === true && engine.pools.includes('serving');
      return isAble && wanted.every((name) => engine.capabilities.includes(name)) ? [engine] : [];
    });
  }
}
