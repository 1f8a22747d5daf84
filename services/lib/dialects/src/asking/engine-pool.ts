// The engines of pool `judge`. In: addresses behind configured URLs, or the loaders' leases. Out: the engine
// with the least in flight, of those that were there when they were last asked. It never waits for one: where none is there, it says so.
import { isDeepStrictEqual } from 'node:util';

import { asBacktalkError, type Clock, type LeaseView } from '@backtalk/kit';
import { createEngineClient, engineDialects, type EngineDialect } from '../create-engine-client.js';
import { isLostEngine } from '../deadly-prompts.js';
import type { CallOptions, EngineClient, EngineModel } from '../engine-client.js';
import { engineErrors, isEngineError } from '../errors.js';
import type { AskedEngine } from './in-words.js';
import type { ResolvedUrls } from './resolved-urls.js';

export interface EnginePoolEvents {
  enginesKnown(count: number): void;
  engineRefused(code: string): void;
}

export interface EnginePoolOptions {
  /** Undefined where none is configured. */
  readonly urls: ResolvedUrls | undefined;
  readonly dialect: EngineDialect;
  /** Used where no address is configured. */
  readonly leases: LeaseView | undefined;
  readonly apiKey: string;
  /** Empty: the engine's base model. */
  readonly model: string;
  readonly events: EnginePoolEvents;
  readonly clock: Clock;
}

export interface PooledEngine extends AskedEngine {
  readonly url: string;
}

interface Member {
  readonly place: Place;
  readonly client: EngineClient;
  model: string;
  inFlight: number;
  /** Others are asked first until then: it was not there. */
  restsUntilMs: number;
  /** Nothing is asked until then: it said so itself, with its limit. */
  limitedUntilMs: number;
}

const restMs = 5_000;
/** However long an engine asks to be left alone. */
const askedRestMaxMs = 5 * 60_000;

interface Place {
  readonly url: string;
  readonly dialect: EngineDialect;
  readonly model: string;
}

export class EnginePool {
  private readonly members = new Map<string, Member>();
  private newestModel = '';

  constructor(private readonly options: EnginePoolOptions) {
    this.look();
    options.leases?.onChange(() => {
      this.look();
    });
  }

  /** Resolves when configured names have been looked up once. */
  async start(): Promise<void> {
    await this.options.urls?.start(() => {
      this.look();
    });
  }

  get size(): number {
    return this.members.size;
  }

  /** Of the engine that was asked last; empty before the first. */
  get lastModel(): string {
    return this.newestModel;
  }

  async use<T>(options: CallOptions, work: (engine: PooledEngine) => Promise<T>): Promise<T> {
    const { clock } = this.options;
    const all = [...this.members].filter(([, { limitedUntilMs }]) => limitedUntilMs <= clock.now());
    const limitedMs = this.limitedForMs;
    if (limitedMs > 0)
      throw engineErrors.overloaded({ retryAfterSeconds: Math.ceil(limitedMs / 1_000), isAsked: true });
    const there = all.filter(([, { restsUntilMs }]) => restsUntilMs <= clock.now());
    const [first, ...rest] = there.length > 0 ? there : all;
    if (first === undefined) throw engineErrors.unreachable({ why: 'no engine of the pool is known' });
    const [url, member] = rest.reduce((least, next) => (next[1].inFlight < least[1].inFlight ? next : least), first);
    member.inFlight += 1;
    try {
      if (member.model === '') member.model = onlyModel(await member.client.models(options));
      this.newestModel = member.model;
      return await work({ url, client: member.client, model: member.model });
    } catch (error) {
      if (isEngineError(error, 'engine_overloaded') && error.detail['isAsked'] === true) {
        const askedMs = Number(error.detail['retryAfterSeconds']) * 1_000;
        member.limitedUntilMs = clock.now() + Math.min(askedMs, askedRestMaxMs);
      }
      if (isLostEngine(error) || isEngineError(error, 'engine_unreachable')) member.restsUntilMs = clock.now() + restMs;
      // Another model is served there by now, of which nothing is known.
      if (isEngineError(error, 'model_not_found') && this.members.get(url) === member) {
        this.leave(url, member);
        this.look();
      }
      throw error;
    } finally {
      member.inFlight -= 1;
    }
  }

  /** How long no engine is to be asked, because each has said so with its limit; 0 where one may be. */
  get limitedForMs(): number {
    const all = [...this.members.values()].map(({ limitedUntilMs }) => limitedUntilMs - this.options.clock.now());
    return all.length === 0 ? 0 : Math.max(0, Math.min(...all));
  }

  async stop(): Promise<void> {
    this.options.leases?.stop();
    this.options.urls?.stop();
    await Promise.all([...this.members.values()].map(({ client }) => client.close()));
  }

  private look(): void {
    const { urls, dialect: configured, leases, apiKey, model: wanted, events } = this.options;
    const leased = (leases?.current() ?? []).flatMap(({ engine }): Place[] => {
      if (engine === undefined || !engine.ready || !engine.pools.includes('judge')) return [];
      const dialect = engineDialects.find((name) => name === engine.dialect);
      if (dialect === undefined) return [];
      return [{ url: engine.url, dialect, model: wanted === '' ? engine.baseModel : wanted }];
    });
    const places = urls?.current().map((url): Place => ({ url, dialect: configured, model: wanted })) ?? leased;
    for (const [url, member] of this.members)
      if (!places.some((place) => isDeepStrictEqual(place, member.place))) this.leave(url, member);
    for (const place of places) {
      const { url, dialect, model } = place;
      if (this.members.has(url)) continue;
      this.members.set(url, {
        place,
        client: createEngineClient({ url, dialect, apiKey }),
        model,
        inFlight: 0,
        restsUntilMs: 0,
        limitedUntilMs: 0,
      });
    }
    events.enginesKnown(this.members.size);
  }

  /** What is in flight there comes to its end. */
  private leave(url: string, { client }: Member): void {
    this.members.delete(url);
    client.leave().catch((error: unknown) => {
      this.options.events.engineRefused(asBacktalkError(error).code);
    });
  }
}

/** What has a parent is an adapter, and names of one folder are one model. Of several, none is meant. */
function onlyModel(models: readonly EngineModel[]): string {
  const own = models.filter(({ parent }) => parent === undefined);
  if (new Set(own.map(({ id, root }) => root ?? id)).size > 1)
    throw engineErrors.replyInvalid({ what: 'it serves several models, and none is named' });
  return own[0]?.id ?? '';
}
