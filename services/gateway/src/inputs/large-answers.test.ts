import { fork, type ChildProcess } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sha256Hex } from '@backtalk/kit';
import { freePort, until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  gatewayEnvironment,
  startLeasedEngine,
  startSurroundings,
  type LeasedEngine,
  type Surroundings,
} from '../testing/started-gateway.js';

/** As many answers of 6 MB as a heap of 256 MiB does not hold. */
const askedAtOnce = 24;

let around: Surroundings;
let leased: LeasedEngine;
let engine: Server;
let child: ChildProcess;
let url: string;
/** Requests that the engine has not answered yet. */
const waiting: ServerResponse[] = [];

/** SGLang's streams carry no ids, so that its answers come in one piece whichever way clients ask. */
const cases = [
  { what: 'in one piece', dialect: 'builtin', stream: false },
  { what: 'of SGLang’s, as a stream', dialect: 'sglang', stream: true },
];

/** What vLLM writes of 4,000 tokens with 20 alternatives for each; in memory a character of such a text takes two bytes. */
function largeAnswer(): Buffer {
  const entry = (token: string) => ({ token, logprob: -1.2345678901234567, bytes: [...Buffer.from(token)] });
  const alternatives = Array.from({ length: 20 }, (_, at) => entry(` tok${String(at)}`));
  const content = Array.from({ length: 4_000 }, () => ({ ...entry(' 字'), top_logprobs: alternatives }));
  const message = { role: 'assistant', content: ' 字'.repeat(4_000) };
  const choice = { index: 0, message, logprobs: { content }, finish_reason: 'stop' };
  return Buffer.from(JSON.stringify({ model: 'fake', choices: [choice] }));
}

async function startAll(dialect: string): Promise<void> {
  around = await startSurroundings();
  engine = createServer((request, response) => {
    request.resume();
    if (request.url === '/v1/models') response.end('{"data":[{"id":"fake"}]}');
    else waiting.push(response);
  });
  await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
  const { port } = engine.address() as AddressInfo;
  leased = await startLeasedEngine(around, 'engine-1', { url: `http://127.0.0.1:${String(port)}`, dialect });
  const path = around.directory.join('keys.json');
  const keys = ['ann', 'eve'].map((user) => {
    return { sha256: sha256Hex(user), tenant: `of ${user}`, user, policies: ['backtalk'] };
  });
  await writeFile(path, JSON.stringify({ keys }));
  const [http, health] = [await freePort(), await freePort()];
  const environment = gatewayEnvironment(around, {
    BACKTALK_KEYS_FILE: path,
    BACKTALK_LISTEN: `127.0.0.1:${String(http)}`,
    BACKTALK_HEALTH_ADDRESS: `127.0.0.1:${String(health)}`,
    BACKTALK_LOG_LEVEL: 'silent',
  });
  url = `http://127.0.0.1:${String(http)}/v1/chat/completions`;
  const main = new URL('../../dist/main.js', import.meta.url);
  const execArgv = ['--max-old-space-size=256', '--max-semi-space-size=16'];
  child = fork(main, { env: environment, stdio: 'ignore', execArgv });
  await until(async () => (await fetch(`http://127.0.0.1:${String(health)}/readyz`)).status === 200);
}

async function stopAll(): Promise<void> {
  child?.kill('SIGKILL');
  engine?.closeAllConnections();
  engine?.close();
  await leased?.stop();
  await around?.stop();
}

/** Nothing of the answer's body is read yet. */
async function ask(key: string, stream: boolean): Promise<Response> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
  const messages = [{ role: 'user', content: 'Hello' }];
  const asked = { model: 'backtalk', messages, logprobs: true, top_logprobs: 20, stream };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(asked) });
}

async function answerAll(count: number, body: Buffer | string): Promise<void> {
  await until(() => waiting.length === count, { what: 'the requests at the engine' });
  const head = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  for (const response of waiting.splice(0)) response.writeHead(200, head).end(body);
}

describe.each(cases)('answers that are made to be large', ({ what, dialect, stream }) => {
  beforeAll(() => startAll(dialect));
  afterAll(stopAll);

  it(`large answers ${what} take one key’s share of the room, and are refused beyond it, while another key notices nothing`, async () => {
    const large = largeAnswer();
    const asking = Array.from({ length: askedAtOnce }, () => ask('eve', stream));
    await answerAll(askedAtOnce, large);
    const small = '{"model":"fake","choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}';
    const other = ask('ann', stream);
    await answerAll(1, small);
    expect(await (await other).text()).toContain('Hi');
    const answers = await Promise.all(asking);
    const refused = answers.filter(({ status }) => status === 429);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]));
    const texts = await Promise.all(refused.map((response) => response.text()));
    for (const text of texts) expect(text).toContain('bytes of requests and answers at once');
    await Promise.all(answers.filter(({ status }) => status === 200).map((response) => response.text()));
    expect(child.exitCode).toBeNull();
  });

  it(`large answers ${what} give their room back once their clients have them`, async () => {
    const large = largeAnswer();
    for (let asked = 0; asked < 6; asked += 1) {
      const asking = ask('eve', stream);
      await answerAll(1, large);
      const response = await asking;
      await response.text();
      expect(response.status).toBe(200);
    }
  });
});
