// An OpenAI-compatible endpoint that answers as a test says, for tests of those who ask a model. In: what each request is
// answered with, by its body. Out: an address, and every body that was received.
import { createServer, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

export interface ChatBody {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly seed?: number;
  readonly [field: string]: unknown;
}

export interface Scripted {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Undefined: the request is never answered. */
export type Script = (body: ChatBody, number: number) => Scripted | undefined;

export interface ScriptedModel {
  readonly url: string;
  readonly heard: readonly ChatBody[];
  script: Script;
  stop(): Promise<void>;
}

/** A reply of the model in these words; a value is written as JSON. */
export function says(words: unknown, { message = {}, finish = 'stop' } = {}): Scripted {
  const content = typeof words === 'string' ? words : JSON.stringify(words);
  return {
    body: { choices: [{ index: 0, message: { role: 'assistant', content, ...message }, finish_reason: finish }] },
  };
}

export async function startScriptedModel(model: string, script: Script, key = ''): Promise<ScriptedModel> {
  const heard: ChatBody[] = [];
  const scripted = { url: '', heard, script, stop: () => stopped(server) };
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      if (key !== '' && request.headers.authorization !== `Bearer ${key}`)
        return answer(response, { status: 401, body: {} });
      if (request.url === '/v1/models') return answer(response, { body: { data: [{ id: model }] } });
      const asked = JSON.parse(body) as ChatBody;
      heard.push(asked);
      return answer(response, scripted.script(asked, heard.length));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  scripted.url = `http://127.0.0.1:${String(typeof address === 'object' ? address?.port : address)}/v1`;
  return scripted;
}

function answer(response: ServerResponse, scripted: Scripted | undefined): void {
  if (scripted === undefined) return;
  const { status = 200, headers = {}, body = {} } = scripted;
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

function stopped(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeAllConnections();
  });
}
