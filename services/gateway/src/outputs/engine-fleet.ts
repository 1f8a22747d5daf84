// The engines that loaders say are there, and a client for each.
//
// In: the loaders' leases. Out: engine leases to choose from, and clients. A lease that has just vanished still counts
// for a while where no living one can serve: a broker that was down loses leases sooner than engines.
import { createEngineClient, dialectNamed, type EngineClient } from '@backtalk/dialects';
import { asBacktalkError, type Clock, type LeaseView } from '@backtalk/kit';
import type { EngineLease } from '@backtalk/proto/weights';
import type { GatewayEvents } from '../events.js';
import { canServe, type Replica } from '../domain/replica-choice.js';

interface EngineFleetOptions {
  readonly leases: LeaseView;
  readonly apiKey: string;
  readonly clock: Clock;
  readonly events: GatewayEvents;
}

interface Seen {
  readonly engine: EngineLease;
  /** When its lease was first missing; undefined while it is held. */
  readonly goneAtMs: number | undefined;
}

const graceMs = 30_000;

export class EngineFleet {
  /** By address, for what was found there: another engine may have taken its place. */
  private readonly clients = new Map<string, { readonly client: EngineClient; readonly what: string }>();
  private seen = new Map<string, Seen>();

  constructor(private readonly options: EngineFleetOptions) {}

  start(): void {
    this.look();
    this.options.leases.onChange(() => this.look());
  }

  async stop(): Promise<void> {
    this.options.leases.stop();
    await Promise.all([...this.clients.values()].map(({ client }) => client.close()));
  }

  /** Those to choose from for a version: living ones, or else those whose leases have just vanished. */
  candidates(version: string): EngineLease[] {
    const able = [...this.seen.values()].filter(({ engine }) => canServe(engine, version));
    const living = able.filter(({ goneAtMs }) => goneAtMs === undefined);
    return (living.length > 0 ? living : able.filter((seen) => this.isInGrace(seen))).map(({ engine }) => engine);
  }

  /** For when no engine is known to hold a version: a loader may have published more than has arrived here. */
  lookAgain(): Promise<void> {
    return this.options.leases.lookAgain();
  }

  /** Engines with a living lease. */
  living(): EngineLease[] {
    return [...this.seen.values()].filter(({ goneAtMs }) => goneAtMs === undefined).map(({ engine }) => engine);
  }

  /** What its loader found out about it; nothing for an engine that is not known. */
  capabilitiesOf(url = ''): readonly string[] {
    return this.seen.get(url)?.engine.capabilities ?? [];
  }

  client({ url, dialect, baseModel }: Replica): EngineClient {
    const what = `${dialect} ${baseModel}`;
    const known = this.clients.get(url);
    if (known?.what === what) return known.client;
    if (known !== undefined) this.letGo(known.client);
    const client = createEngineClient({ url, dialect: dialectNamed(dialect), apiKey: this.options.apiKey });
    this.clients.set(url, { client, what });
    return client;
  }

  /** An answer in flight may be longer than any wait here: it goes on to its end. */
  private letGo(client: EngineClient): void {
    client.leave().catch((error: unknown) => this.options.events.watchFailed('engines', asBacktalkError(error)));
  }

  private look(): void {
    const held = new Map<string, EngineLease>();
    for (const { engine } of this.options.leases.current()) if (engine !== undefined) held.set(engine.url, engine);
    const goneAtMs = this.options.clock.now();
    const next = new Map<string, Seen>();
    for (const [url, seen] of this.seen)
      if (!held.has(url)) next.set(url, { engine: seen.engine, goneAtMs: seen.goneAtMs ?? goneAtMs });
    for (const [url, engine] of held) next.set(url, { engine, goneAtMs: undefined });
    for (const [url, seen] of next) {
      if (seen.goneAtMs === undefined || this.isInGrace(seen)) continue;
      next.delete(url);
      const known = this.clients.get(url);
      this.clients.delete(url);
      if (known !== undefined) this.letGo(known.client);
    }
    this.seen = next;
    this.options.events.enginesSeen(this.living().filter((engine) => engine.ready).length);
  }

  private isInGrace({ goneAtMs }: Seen): boolean {
    return goneAtMs !== undefined && this.options.clock.now() - goneAtMs <= graceMs;
  }
}
