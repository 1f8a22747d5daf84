// What the clients of the benchmarks ask. In: streamed or whole, how many tokens. Out: the body for the gateway, and the one
// that makes an engine send to anybody else what it sends to the gateway: token ids and logprobs with every frame.
import { baseModel, policy } from '@backtalk/deploy';

export interface Asking {
  readonly stream: boolean;
  readonly tokens: number;
}

const question =
  'I have a small balcony that faces north and gets an hour of sun. Which herbs would do well there, and how often should I water them?';

export function bodyForGateway({ stream, tokens }: Asking): string {
  return JSON.stringify({ model: policy, messages: [{ role: 'user', content: question }], stream, max_tokens: tokens });
}

export function bodyForEngine({ stream, tokens }: Asking): string {
  return JSON.stringify({
    model: baseModel,
    messages: [{ role: 'user', content: question }],
    stream,
    max_tokens: tokens,
    temperature: 0.8,
    logprobs: true,
    return_token_ids: true,
    ...(stream && { stream_options: { include_usage: true } }),
  });
}
