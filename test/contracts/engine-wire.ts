// The parts of vLLM's wire that the contract looks at, and plain calls that speak it.
// In: a base URL and a body. Out: status and what came, unread by any parser of ours.

export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
}

export interface Choice {
  readonly delta?: { readonly role?: string; readonly content?: string | null };
  readonly message?: { readonly content: string };
  readonly text?: string;
  readonly token_ids?: readonly number[] | null;
  readonly logprobs?: { readonly content: readonly { readonly logprob: number }[] } | null;
  readonly prompt_logprobs?: readonly (Readonly<Record<string, { readonly logprob: number }>> | null)[] | null;
  readonly finish_reason?: string | null;
}

export interface Answer {
  readonly choices: readonly Choice[];
  readonly usage?: Usage | null;
  readonly prompt_token_ids?: readonly number[] | null;
  readonly model?: string;
}

export interface Refusal {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: number;
  };
}

export interface ModelList {
  readonly data: readonly {
    readonly id: string;
    readonly parent: string | null;
    readonly max_model_len: number | null;
  }[];
}

export interface Reply<T> {
  readonly status: number;
  readonly body: T;
}

export async function post<T>(url: string, path: string, body: unknown): Promise<Reply<T>> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: parsed(text) as T };
}

export async function get<T>(url: string, path: string): Promise<Reply<T>> {
  const response = await fetch(`${url}${path}`);
  return { status: response.status, body: parsed(await response.text()) as T };
}

/** Events of a stream in order, `[DONE]` among them. */
export async function stream(url: string, body: object): Promise<string[]> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true }),
  });
  const events = (await response.text()).split('\n\n').filter((event) => event !== '');
  return events.map((event) => event.replace(/^data: /, ''));
}

export function answersIn(events: readonly string[]): Answer[] {
  return events.filter((event) => event !== '[DONE]').map((event) => JSON.parse(event) as Answer);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
