// Does the broker write through to the disk before it acknowledges? A client cannot ask that: only the monitoring port
// tells. In: its addresses. Out: sentences that say what to do; none is good, or not known, which is warned of.
import { z } from 'zod';
import type { Logger } from '../telemetry/logger.js';

const askWithinMs = 3_000;
const answer = z.object({
  server_name: z.string().default('?'),
  jetstream: z.object({
    config: z.object({ sync_always: z.boolean().default(false) }).default({ sync_always: false }),
  }),
});

export async function syncProblems(monitorUrls: string, logger: Logger): Promise<string[]> {
  const urls = monitorUrls.split(',').filter((url) => url.trim() !== '');
  if (urls.length === 0) logger.warn('broker_sync_not_checked', { variable: 'BACKTALK_NATS_MONITOR_URL' });
  return (await Promise.all(urls.map(syncProblem))).flat();
}

async function syncProblem(url: string): Promise<string[]> {
  const response = await fetch(new URL('/varz', url), { signal: AbortSignal.timeout(askWithinMs) });
  const { server_name: name, jetstream } = answer.parse(await response.json());
  if (jetstream.config.sync_always) return [];
  return [`nats-server ${name} acknowledges before it has written to disk, set jetstream sync_interval: always`];
}
