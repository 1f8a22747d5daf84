/**
 * What an engine must be able to do before it is routed to. Pure.
 *
 * A plain OpenAI endpoint is taken as it is: its turns are served, and never trained on.
 */
import type { CapabilityName } from '@backtalk/dialects';

const required: readonly CapabilityName[] = [
  'token_ids',
  'streamed_token_ids',
  'logprobs',
  'prompt_logprobs',
  'adapters',
];

export function missingCapabilities(dialect: string, names: readonly CapabilityName[]): readonly CapabilityName[] {
  return dialect === 'openai' ? [] : required.filter((name) => !names.includes(name));
}
