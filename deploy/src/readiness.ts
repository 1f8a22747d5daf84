// Two looks at a process that is starting: does a port accept, does an address answer 200.
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';

const answerWithinMs = 1_000;

export async function isListening(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(answerWithinMs) });
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

export async function answersOk(url: string, withinMs = answerWithinMs): Promise<boolean> {
  const asked = request(url, { signal: AbortSignal.timeout(withinMs) });
  // An answer that ends badly has said its status already.
  asked.on('error', () => undefined);
  try {
    const response = once(asked, 'response') as Promise<[IncomingMessage]>;
    asked.end();
    const [answer] = await response;
    answer.on('error', () => undefined).resume();
    return answer.statusCode === 200;
  } catch {
    return false;
  }
}
