// A judge's model at an OpenAI-compatible address, which answers as a test has written. In: an answer for each chat request. Out: its URL,
// and what it was asked. It knows no dialect: what a test gives goes out as it is.
import { createServer, type IncomingMessage } from 'node:http';
import { z } from 'zod';

const heardRequest = z.looseObject({
  model: z.string(),
  messages: z.array(z.object({ role: z.string(), content: z.string() })),
});
export type HeardRequest = z.infer<typeof heardRequest>;

export interface ScriptedAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Never: it keeps the request waiting. */
export type Script = (request: HeardRequest) => ScriptedAnswer | 'never';

export interface ScriptedJudge {
  readonly url: string;
  readonly heard: HeardRequest[];
  script: Script;
  stop(): Promise<void>;
}

const scriptedModel = 'reader';
const contextTokens = 32_768;

export async function startScriptedJudge(script: Script): Promise<ScriptedJudge> {
  const heard: HeardRequest[] = [];
  const judge = { script, heard };
  const server = createServer((request, response) => {
    const send = ({ status = 200, headers = {}, body }: ScriptedAnswer) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify(body));
    };
    if (request.method === 'GET') {
      send({ body: { data: [{ id: scriptedModel, max_model_len: contextTokens }] } });
      return;
    }
    bodyOf(request).then(
      (body) => {
        heard.push(body);
        const answer = judge.script(body);
        if (answer !== 'never') send(answer);
      },
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return Object.assign(judge, { url: `http://127.0.0.1:${port}`, stop });
}

/** A whole answer in OpenAI's shape. */
export function completion(message: unknown, finish = 'stop', usage: object = {}): unknown {
  return {
    id: 'chatcmpl-scripted',
    object: 'chat.completion',
    model: scriptedModel,
    choices: [{ index: 0, message, finish_reason: finish }],
    usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120, ...usage },
  };
}

async function bodyOf(request: IncomingMessage): Promise<HeardRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  return heardRequest.parse(JSON.parse(Buffer.concat(chunks).toString('utf8')));
}
