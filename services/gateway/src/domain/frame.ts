// What of an engine's answer does the client see?
//
// In: a chunk or a whole answer as the engine sent it, which is the gateway's own and is changed in place, because this
// runs for every token. Out: the same with our id and the model name that was asked for; token ids and logprobs only
// where the client asked for them. Pure.
import type { EngineFrame, RawObject } from '@backtalk/dialects';
import { isJsonObject } from '@backtalk/kit';

export interface ClientView {
  readonly turn: string;
  /** The name that the client asked for. */
  readonly model: string;
  readonly wantsLogprobs: boolean;
  readonly wantsTokenIds: boolean;
  readonly wantsUsage: boolean;
}

/** Fields are set to undefined, not deleted: JSON leaves both out, and deleting slows the object down. */
export function forClient(raw: RawObject, view: ClientView): RawObject {
  raw['id'] = view.turn;
  raw['model'] = view.model;
  hide(raw, 'kv_transfer_params');
  hide(raw, 'ec_transfer_params');
  hide(raw, 'prompt_text');
  hide(raw, 'prompt_logprobs');
  if (!view.wantsTokenIds) hide(raw, 'prompt_token_ids');
  const choices = raw['choices'];
  if (!Array.isArray(choices)) return raw;
  for (const choice of choices) {
    if (!isJsonObject(choice)) continue;
    const changed: RawObject = choice;
    if (!view.wantsLogprobs && changed['logprobs'] !== undefined) changed['logprobs'] = null;
    if (!view.wantsTokenIds) hide(changed, 'token_ids');
    hide(changed, 'routed_experts');
  }
  return raw;
}

/** A frame as an event. OpenAI sends token counts in a chunk of their own, at the end, to those who asked; others get none. */
export function chunkForClient({ raw, choice }: Pick<EngineFrame, 'raw' | 'choice'>, view: ClientView): string {
  if (!view.wantsUsage) {
    if (choice === -1) return '';
    hide(raw, 'usage');
  }
  return sseEvent(JSON.stringify(forClient(raw, view)));
}

function hide(object: RawObject, key: string): void {
  if (key in object) object[key] = undefined;
}

export function sseEvent(json: string): string {
  return `data: ${json}\n\n`;
}

export const sseDone = 'data: [DONE]\n\n';
