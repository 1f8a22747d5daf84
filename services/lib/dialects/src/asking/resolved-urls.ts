// The addresses behind configured URLs, looked up again and again, because replicas come and go behind one name. In: URLs. Out:
// one URL for each address of a name that has several (a headless service); any other URL as it is. A name that has no address
// (a headless service without a ready pod) is no engine; one that cannot be looked up keeps what was last known. TLS needs the
// name, so that https URLs stay as they are.
import { lookup as lookUpName } from 'node:dns/promises';
import { isIP } from 'node:net';
import { asBacktalkError, type Clock } from '@backtalk/kit';
import type { EnginePoolEvents } from './engine-pool.js';

export type LookUp = (host: string) => Promise<readonly string[]>;

export interface ResolvedUrlsOptions {
  readonly urls: readonly string[];
  readonly clock: Clock;
  readonly events: Pick<EnginePoolEvents, 'engineRefused'>;
  readonly everyMs?: number;
  readonly lookUp?: LookUp;
}

/** A look takes its time, too, and a replica is to be asked within five seconds. */
const lookEveryMs = 2_000;

export class ResolvedUrls {
  private known: ReadonlyMap<string, readonly string[]>;
  private cancel: () => void = () => undefined;
  private stopped = false;

  constructor(private readonly options: ResolvedUrlsOptions) {
    this.known = new Map(options.urls.map((url) => [url, [url]]));
  }

  current(): readonly string[] {
    return [...this.known.values()].flat();
  }

  /** Resolves after the first look; calls `onChange` whenever there are others than before. */
  async start(onChange: () => void): Promise<void> {
    const before = this.current().join();
    const found = await Promise.all(this.options.urls.map(async (url) => [url, await this.addressesOf(url)] as const));
    if (this.stopped) return;
    this.known = new Map(found);
    if (this.current().join() !== before) onChange();
    this.cancel = this.options.clock.timer(this.options.everyMs ?? lookEveryMs, () => void this.start(onChange));
  }

  stop(): void {
    this.stopped = true;
    this.cancel();
  }

  private async addressesOf(url: string): Promise<readonly string[]> {
    const { hostname, protocol } = new URL(url);
    if (protocol !== 'http:' || isIP(hostname.replaceAll(/[[\]]/g, '')) !== 0) return [url];
    try {
      const addresses = await (this.options.lookUp ?? lookUp)(hostname);
      if (addresses.length <= 1) return [url];
      return addresses.map((address) => {
        const changed = new URL(url);
        changed.hostname = isIP(address) === 6 ? `[${address}]` : address;
        return changed.href.replace(/\/$/, '');
      });
    } catch (error) {
      this.options.events.engineRefused(asBacktalkError(error).code);
      return isNameWithoutAddress(error) ? [] : (this.known.get(url) ?? [url]);
    }
  }
}

/** One family only: a machine with two addresses is one replica. */
async function lookUp(host: string): Promise<readonly string[]> {
  const found = await lookUpName(host, { all: true });
  const family = found[0]?.family;
  return found.filter((address) => address.family === family).map(({ address }) => address);
}

/** What the resolver says of a name that is not there; a resolver that does not answer says something else. */
function isNameWithoutAddress(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOTFOUND' || error.code === 'ENODATA');
}
