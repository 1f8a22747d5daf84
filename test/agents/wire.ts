// What a client sends and hears, written down as it passes: the client itself is not changed, and nothing is added to its requests.
// In: the client's requests. Out: the same answers; each request's body, and the turn that the gateway made of it.
import { z } from 'zod';

const sent = z.looseObject({
  /** Of the chat API, and in another form of Anthropic's; the Responses API has `input`. */
  messages: z.array(z.looseObject({ role: z.string() })).optional(),
  tools: z.array(z.unknown()).optional(),
  chat_template_kwargs: z.record(z.string(), z.unknown()).optional(),
  stream: z.boolean().nullish(),
});

export interface Exchange {
  /** Of the API that was asked. */
  readonly path: string;
  readonly body: z.infer<typeof sent>;
  /** Names of the headers that a client names a session or a turn with. */
  readonly sessionHeaders: readonly string[];
  readonly status: number;
  readonly turn: string;
}

export class Wire {
  readonly exchanges: Exchange[] = [];

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    const body = sent.parse(await request.clone().json());
    const response = await globalThis.fetch(request);
    const turn = response.headers.get('x-backtalk-turn') ?? '';
    // What a client asks for another way when it is refused is no exchange.
    if (turn === '') return response;
    this.exchanges.push({
      path: new URL(request.url).pathname,
      body,
      sessionHeaders: [...request.headers.keys()].filter((name) => /session|turn-type|backtalk/i.test(name)),
      status: response.status,
      turn,
    });
    return response;
  };
}
