// Translates vLLM's refusals to load or unload an adapter.
import type { BacktalkError } from '@backtalk/kit';
import { engineErrors } from '../errors.js';
import { errorIn } from '../openai/refusals.js';
import type { Reply } from '../transport/engine-pool.js';

const isFull = /unload one first|no free slot/i;
const speaksOfAdapter = /max_lora_rank|target[ _]modules|not supported/i;

export function loadRefusal({ status, text }: Reply, name: string): BacktalkError {
  const error = errorIn(text);
  if (status === 401) return engineErrors.unauthorized({});
  if (status === 404 || status === 405) {
    // Without VLLM_ALLOW_RUNTIME_LORA_UPDATING the path itself is unknown, and the body has no `error`.
    if (error === undefined) return engineErrors.unsupported({ what: 'loading of adapters', dialect: 'vllm' });
    return engineErrors.adapterPathMissing({ name });
  }
  if (/already been loaded/.test(error?.message ?? '')) return engineErrors.adapterAlreadyLoaded({ name });
  const said = error?.message ?? '';
  // An engine that is ill or full answers 500 to good adapters, too: only where its words are about the adapter is it refused.
  const isAboutAdapter = status < 500 && status !== 429 ? !isFull.test(said) : speaksOfAdapter.test(said);
  return isAboutAdapter
    ? engineErrors.adapterRefused({ name, engineStatus: status })
    : engineErrors.failed({ engineStatus: status });
}

export function unloadRefusal({ status, text }: Reply, name: string): BacktalkError {
  if (status === 401) return engineErrors.unauthorized({});
  if (status === 404 || status === 400)
    return errorIn(text) === undefined
      ? engineErrors.unsupported({ what: 'unloading of adapters', dialect: 'vllm' })
      : engineErrors.adapterNotLoaded({ name });
  return engineErrors.failed({ engineStatus: status });
}
