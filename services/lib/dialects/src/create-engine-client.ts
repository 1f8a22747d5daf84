// Chooses the client for a dialect.
import type { EngineClient } from './engine-client.js';
import { OpenAiClient } from './openai/open-ai-client.js';
import { SglangClient } from './sglang/sglang-client.js';
import type { EngineAddress } from './transport/engine-connections.js';
import { VllmClient } from './vllm/vllm-client.js';

/** `builtin` is the engine that comes with Backtalk; it speaks vLLM's dialect. */
export const engineDialects = ['vllm', 'builtin', 'sglang', 'openai'] as const;
export type EngineDialect = (typeof engineDialects)[number];

/** A dialect that is not known here is spoken to in the words that all understand. */
export function dialectNamed(name: string): EngineDialect {
  return engineDialects.find((known) => known === name) ?? 'openai';
}

export function createEngineClient({ dialect, ...address }: EngineAddress & { dialect: EngineDialect }): EngineClient {
  switch (dialect) {
    case 'vllm':
    case 'builtin':
      return new VllmClient(address);
    case 'sglang':
      return new SglangClient(address);
    case 'openai':
      return new OpenAiClient(address);
  }
}
