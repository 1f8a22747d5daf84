// Which engine answers: the one that comes with Backtalk, the vLLM that the set-up installs, or one that runs elsewhere. In: what
// --engine and --engine-key-file say, or what the last start was told. Out: the choice, with the address's dialect and context,
// asked of it by the capability probe; or one line that says why it cannot serve. Starts nothing.
import {
  createEngineClient,
  isEngineError,
  tryAdapter,
  type CallOptions,
  type Capabilities,
  type CapabilityName,
  type EngineClient,
} from '@backtalk/dialects';
import { asBacktalkError, contextMin, type KeptEngine } from '@backtalk/kit';
import { trialWidths } from './base-model.js';
import type { BoxPlan } from './box-plan.js';
import { deployErrors } from './errors.js';
import { isHere, keyIn, modelsAt, type ApiFlags } from './remote-api.js';
import { isVllmInstalled } from './vllm-program.js';

/** What flags say; undefined where one was not given. */
export interface EngineFlags {
  /** `builtin`, `vllm`, or an address. */
  readonly engine: string | undefined;
  readonly keyFile: string | undefined;
}

const dialects = ['vllm', 'sglang'] as const;

export interface EngineElsewhere {
  readonly url: string;
  readonly dialect: (typeof dialects)[number];
  /** Empty where none is asked for. */
  readonly key: string;
  readonly keyFile?: string;
  readonly baseModel: string;
  /** Tokens of prompt and answer together; 0 where it does not say. */
  readonly contextTokens: number;
  /** Whether requests with tools are taken. */
  readonly takesTools: boolean;
}

export type EngineChoice = 'builtin' | 'vllm' | EngineElsewhere;

export const engineApi: ApiFlags = {
  option: 'engine',
  keyOption: 'engine-key-file',
  task: 'serve',
  instead: 'builtin, or vllm',
};
/** The first answer with logprobs has an engine compile for up to half a minute. */
const probedWithinMs = 120_000;

export const isElsewhere = (engine: EngineChoice | undefined): engine is EngineElsewhere => typeof engine === 'object';

export async function engineChoice(
  flags: EngineFlags,
  kept: KeptEngine | undefined,
  root: string,
  signal?: AbortSignal,
): Promise<EngineChoice> {
  const named = flags.engine ?? (typeof kept === 'object' ? kept.url : kept) ?? 'builtin';
  const isAddress = named !== 'builtin' && named !== 'vllm';
  if (!isAddress && flags.keyFile !== undefined) {
    const wanted = 'usable without --engine URL, which no start has named';
    throw deployErrors.badOption({ option: 'engine-key-file', value: flags.keyFile, wanted });
  }
  if (named === 'vllm' && !isVllmInstalled(root)) throw deployErrors.notInstalled({});
  if (!isAddress) return named === 'vllm' ? 'vllm' : 'builtin';
  // Another address gets nothing of what belonged to the one before, least of all its key.
  const keptFile = flags.engine === undefined && typeof kept === 'object' ? kept.keyFile : undefined;
  return engineAt(named, flags.keyFile ?? keptFile, { deadlineMs: probedWithinMs, signal });
}

const refusal = (url: string, why: string) => deployErrors.apiRefused({ option: 'engine', url, task: 'serve', why });

async function engineAt(url: string, keyFile: string | undefined, patience: CallOptions): Promise<EngineElsewhere> {
  const key = keyFile === undefined ? '' : keyIn(keyFile, engineApi);
  const models = await modelsAt({ url, key, keyFile }, engineApi);
  if ('away' in models) throw refusal(url, models.away);
  let best: (Pick<EngineElsewhere, 'dialect' | 'takesTools'> & { readonly found: Capabilities }) | undefined;
  for (const dialect of dialects) {
    const probed = await asked({ url, key, dialect }, async (client) => {
      const found = await client.probe(patience);
      return {
        dialect,
        found,
        takesTools: missingIn(found) === undefined && (await takesTools(client, found.baseModel, patience)),
      };
    });
    // The dialect in which it can do most is its own.
    if (best === undefined || probed.found.names.length > best.found.names.length) best = probed;
    if (missingIn(best.found) === undefined) break;
  }
  if (best === undefined) throw refusal(url, 'it answers no probe');
  const { found, ...spoken } = best;
  const why = missingIn(found) ?? shortContext(found.maxContext);
  if (why !== undefined) throw refusal(url, why);
  const own = keyFile === undefined ? {} : { keyFile };
  return { url, key, ...own, ...spoken, baseModel: found.baseModel, contextTokens: found.maxContext };
}

/** Asks the engine; what goes wrong is a refusal of its address, in the words of `why` where it knows any. */
async function asked<T>(
  { url, key, dialect }: Pick<EngineElsewhere, 'url' | 'key' | 'dialect'>,
  ask: (client: EngineClient) => Promise<T>,
  why: (error: unknown) => string | undefined = () => undefined,
): Promise<T> {
  const client = createEngineClient({ url, apiKey: key, dialect });
  try {
    return await ask(client);
  } catch (error) {
    throw refusal(url, why(error) ?? asBacktalkError(error).message.replace(/\.$/, ''));
  } finally {
    await client.close();
  }
}

/** Without these nothing of its turns could be learned, or nothing that was learned be served; the first that lacks is named. */
const needed: readonly (readonly [CapabilityName, string])[] = [
  [
    'adapters',
    'it does not load adapters while it runs (vLLM: --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True; SGLang: --enable-lora --max-lora-rank R --lora-target-modules all)',
  ],
  ['token_ids', 'its answers come without token ids, so that nothing could be learned from them'],
  ['logprobs', 'its answers come without logprobs, so that nothing could be learned from them'],
  [
    'true_logprobs',
    'its logprobs are not those that it scores the same answer with (vLLM: --logprobs-mode processed_logprobs)',
  ],
];

const missingIn = ({ names }: Capabilities) => needed.find(([name]) => !names.includes(name))?.[1];

function shortContext(tokens: number): string | undefined {
  const isShort = tokens > 0 && tokens < contextMin;
  return isShort ? `its context is ${String(tokens)} tokens, and ${String(contextMin)} are the least` : undefined;
}

const tool = { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } };

/** vLLM refuses each request with tools, unless it was started with a parser of calls. */
async function takesTools(client: EngineClient, model: string, patience: CallOptions): Promise<boolean> {
  try {
    const messages = [{ role: 'user', content: 'Hello' }];
    await client.chat({ model, messages, tools: [tool], max_tokens: 1 }, patience);
    return true;
  } catch (error) {
    if (isEngineError(error, 'invalid_request', 'engine_unsupported')) return false;
    throw error;
  }
}

/** A version is a change to one base's weights, by the name that engines serve it under. */
export function refuseOtherBaseOf({ url, baseModel }: EngineElsewhere, wanted: string): void {
  if (baseModel === wanted) return;
  const why = `it serves ${baseModel}, and the base model of this start is ${wanted} (--model names another; vLLM and SGLang: --served-model-name ${wanted})`;
  throw refusal(url, why);
}

interface Shared {
  /** Folder of the base model. */
  readonly model: string;
  readonly adapters: string;
  readonly rank: number;
}

/** Versions reach an engine as files: it has to see the folder that they are put into, under the same path. */
export function refuseUnsharedFolder(engine: EngineElsewhere, { model, adapters, rank }: Shared): Promise<void> {
  const trial = { directory: adapters, rank, widths: trialWidths(model), baseModel: engine.baseModel };
  const how = isHere(engine.url) ? 'a container: -v' : 'NFS, say';
  const unseen = `it does not see ${adapters}, where versions are put for it: share that folder with it under the same path (${how})`;
  const unfit = `it takes no adapter of rank ${String(rank)}, which is trained here (vLLM, SGLang: --enable-lora, --max-lora-rank; SGLang also --lora-target-modules all)`;
  const why = (error: unknown) =>
    isEngineError(error, 'adapter_path_missing') ? unseen : isEngineError(error, 'adapter_refused') ? unfit : undefined;
  return asked(engine, (client) => tryAdapter(client, trial, { deadlineMs: probedWithinMs }), why);
}

/** What answers, and why, in one line. */
export function reasonOfEngine(engine: EngineChoice, box?: BoxPlan): string {
  if (box !== undefined) return `vLLM on cards ${box.engines.flatMap(({ cards }) => cards).join(', ')} (--profile gpu)`;
  if (engine === 'builtin') return 'the built-in one, on the CPU (--engine URL or vllm names another)';
  if (engine === 'vllm') return 'vLLM, its CPU build, started here (--engine vllm)';
  const { url, dialect, keyFile, contextTokens, takesTools: tools } = engine;
  const key = keyFile === undefined ? 'no key' : `key of ${keyFile}`;
  const far = isHere(url) ? '' : '; conversations are sent there';
  const context = contextTokens === 0 ? '' : `; context ${String(contextTokens)} tokens`;
  const refuses = tools ? '' : '; it REFUSES requests with tools (vLLM: --enable-auto-tool-choice --tool-call-parser)';
  return `${url}, which speaks as ${dialect === 'vllm' ? 'vLLM' : 'SGLang'} (--engine; ${key}${far}${context}${refuses})`;
}
