// An OpenAI-compatible API at an address that flags name: is the address one, which key goes there, and what does it serve? In:
// words of the command line. Out: the models there, that it is away, or a refusal in one line that names the flag. The key is
// read from its file at every start, and stands in no message.
import { readFileSync, statSync } from 'node:fs';
import { createEngineClient, isEngineError, type EngineModel } from '@backtalk/dialects';
import { asBacktalkError } from '@backtalk/kit';
import { deployErrors } from './errors.js';

/** The flags of an address, and what is said in their refusals. */
export interface ApiFlags {
  readonly option: string;
  readonly keyOption: string;
  /** What the address is for, as the verb of a sentence. */
  readonly task: string;
  /** What may stand in place of an address, where anything may. */
  readonly instead?: string;
}

/** The flags of an address where one model is asked. */
export interface ModelFlags extends ApiFlags {
  readonly modelOption: string;
}

const answersWithinMs = 10_000;

/** Why requests cannot be sent to an address; undefined where they can. */
export function wantedOfUrl(text: string, { keyOption, instead }: ApiFlags): string | undefined {
  const other = instead === undefined ? '' : `, or ${instead}`;
  const wanted = `the address of an OpenAI-compatible API, such as https://host/v1${other}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || text.includes(',')) return wanted;
  const isPlain = url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  return isPlain ? undefined : `${wanted}, without user, password or query: a key is named with --${keyOption}`;
}

/** Whether it is on this machine. */
export const isHere = (url: string) => ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(url).hostname);

export function keyIn(file: string, { keyOption: option }: ApiFlags): string {
  const refuse = (why: string) => deployErrors.keyFileRefused({ option, file, why });
  const mode = statSync(file, { throwIfNoEntry: false })?.mode;
  if (mode === undefined) throw refuse('is not there');
  if ((mode & 0o077) !== 0) throw refuse('can be read by others (chmod 600 it)');
  let key: string;
  try {
    key = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw refuse(`cannot be read (${codeOf(error)})`);
  }
  if (key === '') throw refuse('is empty');
  if (!/^[\x21-\x7e]+$/.test(key)) throw refuse('holds more than one key, on a line of its own');
  return key;
}

const codeOf = (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : 'unknown');

export interface ApiPlace {
  readonly url: string;
  readonly key: string;
  readonly keyFile: string | undefined;
}

/** What the address serves, or why it does not answer now. Refuses what no waiting mends. */
export async function modelsAt(
  { url, key: apiKey, keyFile }: ApiPlace,
  { option, keyOption, task }: ApiFlags,
): Promise<{ readonly found: readonly EngineModel[] } | { readonly away: string }> {
  const client = createEngineClient({ url, apiKey, dialect: 'openai' });
  try {
    return { found: await client.models({ deadlineMs: answersWithinMs }) };
  } catch (error) {
    if (isEngineError(error, 'engine_unauthorized')) {
      const why =
        keyFile === undefined ? `it asks for a key (--${keyOption} FILE)` : `it refuses the key of ${keyFile}`;
      throw deployErrors.apiRefused({ option, url, task, why });
    }
    if (isEngineError(error, 'engine_unsupported', 'model_not_found', 'invalid_request', 'engine_reply_invalid'))
      throw deployErrors.apiRefused({ option, url, task, why: 'it gives no list of models at /v1/models' });
    const { code, message } = asBacktalkError(error);
    const why = code === 'engine_timeout' ? `not within ${String(answersWithinMs / 1_000)} s` : message;
    return { away: `it does not answer (${why.replace(/\.$/, '')})` };
  } finally {
    await client.close();
  }
}

const namesShown = 5;

/** The model that is asked for, or the only one that is served there where none is; refuses what leaves a choice. */
export function modelNamed(
  url: string,
  wanted: string,
  found: readonly EngineModel[],
  { option, modelOption, task }: ModelFlags,
): string {
  // One with a parent is an adapter, which has to be asked for by name.
  const own = found.filter(({ parent }) => parent === undefined || parent === '');
  const first = own[0]?.id;
  if (wanted === '' && own.length === 1 && first !== undefined) return first;
  if (found.some(({ id }) => id === wanted)) return wanted;
  const shown = found.slice(0, namesShown).map(({ id }) => id);
  const more = found.length > namesShown ? ` and ${String(found.length - namesShown)} more` : '';
  const list = found.length === 0 ? 'none' : `${shown.join(', ')}${more}`;
  const why =
    wanted === '' ? `it serves ${list}: name one with --${modelOption}` : `it has no model ${wanted}, but ${list}`;
  throw deployErrors.apiRefused({ option, url, task, why });
}
