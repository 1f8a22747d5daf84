// The gateway as any client sees it: chat completions by the official client.
import OpenAI from 'openai';

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

const answerWithinMs = 180_000;

export function endpointClient(baseURL: string, apiKey: string): OpenAI {
  return new OpenAI({ baseURL, apiKey, timeout: answerWithinMs, maxRetries: 4 });
}
