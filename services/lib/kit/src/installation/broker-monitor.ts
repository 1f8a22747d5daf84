const askWithinMs = 3_000;

/** One page of a broker's monitor, as JSON; its address may have a base path of its own. */
export async function askMonitor(url: string, page: 'jsz' | 'varz'): Promise<unknown> {
  const response = await fetch(new URL(page, url.endsWith('/') ? url : `${url}/`), {
    signal: AbortSignal.timeout(askWithinMs),
  });
  return response.json();
}
