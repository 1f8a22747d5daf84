// The model that plays or scores, as flags name it. In: an address, a name, a file with a key. Out: what can be asked, checked by
// asking once what is served there; or a refusal in one line that names the flag. The key stands in no message and no output.
import { resolve } from 'node:path';
import { keyIn, modelNamed, modelsAt, wantedOfUrl, type ModelFlags } from '@backtalk/deploy';
import { simulateErrors } from '../errors.js';

export interface NamedModel {
  readonly url: string;
  readonly model: string;
  /** Empty where none is asked for. */
  readonly key: string;
  readonly keyFile: string | undefined;
  readonly keyOption: string;
}

export interface SaidOfModel {
  readonly url?: string | undefined;
  readonly model?: string | undefined;
  readonly keyFile?: string | undefined;
}

export const userApi: ModelFlags = {
  option: 'llm-url',
  keyOption: 'llm-key-file',
  modelOption: 'llm-model',
  task: 'play the user',
};
export const scorerApi: ModelFlags = {
  option: 'scorer-url',
  keyOption: 'scorer-key-file',
  modelOption: 'scorer-model',
  task: 'score answers',
};

/** Undefined where no flag names one. */
export async function namedModel(said: SaidOfModel, flags: ModelFlags): Promise<NamedModel | undefined> {
  const { url, model } = said;
  const { option, modelOption, keyOption } = flags;
  if (url === undefined) {
    const [name, value] = model === undefined ? [keyOption, said.keyFile] : [modelOption, model];
    if (value === undefined) return undefined;
    throw simulateErrors.badArgument({ name: `--${name}`, value, wanted: `usable without --${option}` });
  }
  const wanted = wantedOfUrl(url, flags);
  if (wanted !== undefined)
    throw simulateErrors.badArgument({ name: `--${option}`, value: withoutSecrets(url), wanted });
  const keyFile = said.keyFile === undefined ? undefined : resolve(said.keyFile);
  const key = keyFile === undefined ? '' : keyIn(keyFile, flags);
  const models = await modelsAt({ url, key, keyFile }, flags);
  if ('away' in models) throw simulateErrors.modelAway({ option, url, task: flags.task, why: models.away });
  return { url, model: modelNamed(url, model ?? '', models.found, flags), key, keyFile, keyOption };
}

/** What may be a key is repeated nowhere. */
const withoutSecrets = (url: string) => (/[@?#]/.test(url) ? '…' : url);

/** Whether two names are of one model, wherever it is served: a hub's folder before it says nothing. */
export function isSameModel(one: NamedModel, other: NamedModel): boolean {
  return plainName(one.model) === plainName(other.model);
}

const plainName = (model: string) => model.toLowerCase().split('/').at(-1) ?? '';
