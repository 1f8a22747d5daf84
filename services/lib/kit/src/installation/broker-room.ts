// How much of what the broker may hold is used, by all streams together? In: a connection, and the broker's monitoring addresses
// where there are any. Out: bytes on disk and in memory, and their bounds: the account's, where it has some, else the server's.
import { z } from 'zod';
import type { Broker } from '../broker/connect.js';
import { askMonitor } from './broker-monitor.js';

export interface Room {
  readonly kind: 'storage' | 'memory';
  readonly bytes: number;
  /** 0 where nothing says how much it may be. */
  readonly bytesMax: number;
}

const answer = z.object({
  storage: z.number(),
  memory: z.number(),
  config: z.object({ max_storage: z.number(), max_memory: z.number() }),
});

/** Of the fullest that answers: one whose monitor is away, or that tells this user nothing of its account, is left out. */
export async function brokerRoom(broker: Broker, monitorUrls: string): Promise<readonly Room[]> {
  const urls = monitorUrls.split(',').filter((url) => url.trim() !== '');
  const asked = await Promise.allSettled([askAccount(broker), ...urls.map(askServer)]);
  const answers = asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  return (['storage', 'memory'] as const).flatMap((kind) => {
    const rooms = answers.map(({ config, ...used }) => ({ kind, bytes: used[kind], bytesMax: config[`max_${kind}`] }));
    const share = ({ bytes, bytesMax }: Room) => bytes / Math.max(bytesMax, 1);
    const bounded = rooms.filter(({ bytesMax }) => bytesMax > 0).sort((a, b) => share(b) - share(a));
    const [fullest] = [...bounded, ...rooms.map((room) => ({ ...room, bytesMax: 0 }))];
    return fullest === undefined ? [] : [fullest];
  });
}

async function askAccount(broker: Broker): Promise<z.infer<typeof answer>> {
  const { storage, memory, limits } = await broker.jsm.getAccountInfo();
  return { storage, memory, config: limits };
}

async function askServer(url: string): Promise<z.infer<typeof answer>> {
  return answer.parse(await askMonitor(url, 'jsz'));
}
