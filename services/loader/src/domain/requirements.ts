// May this engine serve the policy? In: what a probe found, what the policy needs, the pools it is in. Out: why it is refused,
// or nothing. An engine that gives no ids or no logprobs is taken as it is, and so is a plain OpenAI endpoint: their turns
// are served, and never trained on. An engine that only judges serves no policy, and may be anything. Pure.
import type { Capabilities } from '@backtalk/dialects';

export interface PolicyNeeds {
  readonly engineDialect: string;
  /** Empty: whatever the engine serves is the policy's base. */
  readonly baseModel: string;
  /** Tokens of prompt and answer together; 0: any. */
  readonly contextMin: number;
}

const poolsOfPolicies: ReadonlySet<string> = new Set(['serving', 'evaluation']);

export function servesPolicies(pools: readonly string[]): boolean {
  return pools.some((pool) => poolsOfPolicies.has(pool));
}

export function misfitOf({ baseModel, maxContext, names }: Capabilities, needs: PolicyNeeds): string | undefined {
  if (needs.baseModel !== '' && baseModel !== needs.baseModel) {
    return `refused: it serves ${baseModel}, and the policy's base model is ${needs.baseModel}`;
  }
  if (maxContext > 0 && maxContext < needs.contextMin) {
    return `refused: its context is ${maxContext} tokens, and the policy needs ${needs.contextMin}`;
  }
  if (needs.engineDialect !== 'openai' && !names.includes('adapters')) {
    return 'refused: it does not load adapters while it runs (vLLM: --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True)';
  }
  return undefined;
}

/** Why an adapter of the policy's rank was refused when it was tried. */
export function rankMisfit(rank: number): string {
  return `refused: it takes no adapter of rank ${rank}, which the policy trains (vLLM: --max-lora-rank)`;
}
