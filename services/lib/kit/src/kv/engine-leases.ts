// The loaders' leases, without those whose engine stands where none of this installation may. Who reads a lease sends its
// engine prompts and the engines' key, and a loader's broker user writes any address into one. In: leases, and the hosts that
// the operator lists. Out: the leases of engines there; what is refused is logged once, counted and seen in status.
import { lookup as lookUpName } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Lease } from '@backtalk/proto/weights';
import type { Broker } from '../broker/connect.js';
import { clip } from '../conversation/clip.js';
import { asBacktalkError } from '../errors/backtalk-error.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { type Clock, systemClock } from '../time/clock.js';
import { type LeaseView, watchLeases } from './leases.js';

export type LookUp = (name: string) => Promise<readonly string[]>;

interface EngineLeasesContext {
  readonly broker: Broker;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock?: Clock;
  /** Host names, addresses, `*.<domain>`, or `*` for any. A name stands for its addresses, too. */
  readonly config: { readonly engineHosts: readonly string[] };
  readonly lookUp?: LookUp;
}

/** How soon a new engine is used, and one whose address its name has lost no more: this, and what the resolver keeps. */
const lookEveryMs = 2_000;
const writtenCharactersMax = 200;

export async function watchEngineLeases(context: EngineLeasesContext): Promise<LeaseView> {
  const { clock = systemClock } = context;
  const view = new EngineLeases(await watchLeases(context.broker, 'loader', { clock }), context, clock);
  await view.start();
  return view;
}

class EngineLeases implements LeaseView {
  private readonly hosts: readonly string[];
  private readonly names: readonly string[];
  private readonly addresses = new Map<string, readonly string[]>();
  private readonly listeners = new Set<(leases: readonly Lease[]) => void>();
  private refused: ReadonlySet<string> = new Set();
  private told = '';
  private looking: Promise<void> | undefined;
  private stopped = false;
  private cancel: () => void = () => undefined;
  private readonly refusedNow;
  private readonly refusedEver;

  constructor(
    private readonly all: LeaseView,
    private readonly context: EngineLeasesContext,
    private readonly clock: Clock,
  ) {
    const { config, metrics } = context;
    this.hosts = config.engineHosts.map(written);
    this.names = this.hosts.filter((host) => isIP(host) === 0 && !host.includes('*') && host !== 'localhost');
    this.refusedNow = metrics.gauge(
      'leased_engines_refused',
      'Leases of engines whose host BACKTALK_ENGINE_HOSTS does not list: nothing is sent to them.',
    );
    this.refusedEver = metrics.counter(
      'leased_engines_refused_total',
      'Leases that were refused for their engine’s host.',
    );
  }

  async start(): Promise<void> {
    this.all.onChange(() => {
      // Engines that are allowed already are told of without waiting for a resolver.
      this.tell();
      void this.look();
    });
    await this.look();
    if (this.names.length > 0) this.lookLater();
  }

  current(): readonly Lease[] {
    return this.all.current().filter((lease) => this.allows(lease));
  }

  onChange(fn: (leases: readonly Lease[]) => void): () => void {
    this.listeners.add(fn);
    return () => this.listeners.delete(fn);
  }

  lookAgain(): Promise<void> {
    return this.all.lookAgain();
  }

  stop(): void {
    this.stopped = true;
    this.cancel();
    this.listeners.clear();
    this.all.stop();
  }

  private lookLater(): void {
    this.cancel = this.clock.timer(lookEveryMs, () => {
      void this.look().then(() => {
        if (!this.stopped) this.lookLater();
      });
    });
  }

  private look(): Promise<void> {
    this.looking ??= this.lookNow().finally(() => (this.looking = undefined));
    return this.looking;
  }

  /** Names are looked up only for engines that no entry names as they are. */
  private async lookNow(): Promise<void> {
    const isUnnamed = ({ engine }: Lease) => engine !== undefined && !this.isNamed(hostOf(engine.url));
    if (this.names.length > 0 && this.all.current().some(isUnnamed))
      await Promise.all(this.names.map((name) => this.lookUp(name)));
    if (!this.stopped) this.settle();
  }

  private async lookUp(name: string): Promise<void> {
    try {
      this.addresses.set(name, await (this.context.lookUp ?? lookUpAll)(name));
    } catch (error) {
      // A resolver that does not answer takes no engine away; a name that is gone has no addresses.
      if (isNameWithoutAddress(error)) this.addresses.delete(name);
      else this.context.logger.warn('engine_host_not_looked_up', { host: name, error: asBacktalkError(error) });
    }
  }

  private settle(): void {
    const refused = this.all.current().filter((lease) => !this.allows(lease));
    for (const { instance, engine } of refused) {
      if (this.refused.has(keyOf(instance, engine))) continue;
      this.refusedEver.inc();
      const host = clip(hostOf(engine?.url ?? ''), writtenCharactersMax);
      this.context.logger.warn('engine_lease_refused', { instance, host, setting: 'BACKTALK_ENGINE_HOSTS' });
    }
    this.refused = new Set(refused.map(({ instance, engine }) => keyOf(instance, engine)));
    this.refusedNow.set(refused.length);
    this.tell();
  }

  private tell(): void {
    const leases = this.current();
    const text = JSON.stringify(leases);
    if (text === this.told) return;
    this.told = text;
    for (const listener of this.listeners) listener(leases);
  }

  private allows({ engine }: Lease): boolean {
    if (engine === undefined) return true;
    const host = hostOf(engine.url);
    return this.isNamed(host) || [...this.addresses.values()].some((addresses) => addresses.includes(host));
  }

  private isNamed(host: string): boolean {
    if (host === '') return false;
    return this.hosts.some(
      (entry) => entry === '*' || entry === host || (entry.startsWith('*.') && host.endsWith(entry.slice(1))),
    );
  }
}

const keyOf = (instance: string, engine: Lease['engine']): string => `${instance} ${engine?.url ?? ''}`;

/** IPv6 stands in brackets in a URL. */
function bare(host: string): string {
  return host.toLowerCase().replaceAll(/[[\]]/g, '');
}

/** An entry as a URL has it: small letters, an address in its shortest form. */
function written(entry: string): string {
  const inUrl = isIP(bare(entry)) === 6 ? `[${bare(entry)}]` : bare(entry);
  return entry.includes('*') || !URL.canParse(`http://${inUrl}`)
    ? bare(entry)
    : bare(new URL(`http://${inUrl}`).hostname);
}

/** As a request would go there; empty where none could. */
function hostOf(url: string): string {
  if (!URL.canParse(url)) return '';
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' || protocol === 'https:' ? bare(hostname) : '';
}

async function lookUpAll(name: string): Promise<readonly string[]> {
  return (await lookUpName(name, { all: true })).map(({ address }) => address);
}

function isNameWithoutAddress(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOTFOUND' || error.code === 'ENODATA');
}
