// Clients that ask for chat answers, many at a time, at as little cost of their own as can be: nothing is parsed but the end.
// In: an address, a body, how many. Out: how long it took and how many answers did not come to their end.
import { Agent, request, type IncomingMessage } from 'node:http';

export interface Load {
  /** Base URL without /v1. */
  readonly url: string;
  readonly body: string;
  readonly requests: number;
  /** At once. */
  readonly clients: number;
}

export interface LoadResult {
  readonly seconds: number;
  readonly failed: number;
}

/** What one answer showed, as far as the clients look. */
export interface Seen {
  readonly whole: boolean;
  /** Milliseconds from the request to the first piece with text in it; NaN when there was none. */
  readonly firstTextMs: number;
}

const streamEnd = 'data: [DONE]\n\n';
const firstText = /"content":"[^"]/;
const tailBytes = 64;

export async function runLoad({ url, body, requests, clients }: Load): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const startedAt = performance.now();
  let asked = 0;
  let failed = 0;
  const live = async () => {
    while (asked < requests) {
      asked += 1;
      const { whole } = await askOnce(agent, url, body);
      if (!whole) failed += 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, live));
  agent.destroy();
  return { seconds: (performance.now() - startedAt) / 1_000, failed };
}

/** A connection that breaks is an answer that is not whole. */
export function askOnce(agent: Agent, url: string, body: string): Promise<Seen> {
  return new Promise((resolve) => {
    const startedAt = performance.now();
    const broken = () => {
      resolve({ whole: false, firstTextMs: Number.NaN });
    };
    const asking = request(`${url}/v1/chat/completions`, {
      agent,
      method: 'POST',
      timeout: 60_000,
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    });
    asking.once('response', (response) => {
      watch(response, startedAt).then(resolve, broken);
    });
    asking.once('timeout', () => asking.destroy());
    asking.once('error', broken);
    asking.end(body);
  });
}

async function watch(response: IncomingMessage, startedAt: number): Promise<Seen> {
  const isStream = response.headers['content-type']?.startsWith('text/event-stream') ?? false;
  let firstTextMs = Number.NaN;
  let begin = '';
  let tail: Buffer = Buffer.alloc(0);
  for await (const chunk of response as AsyncIterable<Buffer>) {
    if (Number.isNaN(firstTextMs)) {
      begin += chunk.toString('latin1');
      if (firstText.test(begin)) firstTextMs = performance.now() - startedAt;
    }
    tail = chunk.length >= tailBytes ? chunk.subarray(-tailBytes) : Buffer.concat([tail, chunk]).subarray(-tailBytes);
  }
  const whole = response.statusCode === 200 && (!isStream || tail.toString('latin1').endsWith(streamEnd));
  return { whole, firstTextMs };
}
