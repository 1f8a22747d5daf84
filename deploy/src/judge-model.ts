// Which model reads next states in place of words and tools' fields. In: what --judge-url and the flags beside it say, or what
// the last start was told. Out: the judge's address, model and key, checked; or one line that says why it cannot judge. The key
// is read from its file at every start, and kept nowhere else.
import type { KeptJudge } from '@backtalk/kit';
import { deployErrors } from './errors.js';
import { isHere, keyIn, modelNamed, modelsAt, type ModelFlags } from './remote-api.js';

/** What flags say; undefined where one was not given. */
export interface JudgeFlags {
  /** `none` takes away what an earlier start was told. */
  readonly url: string | undefined;
  readonly model: string | undefined;
  readonly keyFile: string | undefined;
}

export interface JudgeModel extends KeptJudge {
  /** Empty where none is asked for. */
  readonly key: string;
  /** Why it could not be asked now, though an earlier start could; votes wait until it answers. */
  readonly away: string;
}

export const noJudge = 'none';
export const judgeApi: ModelFlags = {
  option: 'judge-url',
  keyOption: 'judge-key-file',
  modelOption: 'judge-model',
  task: 'judge',
  instead: 'none',
};

/** The judge that flags name, or what is kept of the last start, as far as flags leave it; its address is not asked. */
export function namedJudge(flags: JudgeFlags, kept: KeptJudge | undefined): KeptJudge | undefined {
  if (flags.url === noJudge) return undefined;
  // Another address gets nothing of what belonged to the one before, least of all its key.
  const { url, model = '', keyFile } = flags.url === undefined ? { ...kept, ...given(flags) } : { ...flags };
  if (url !== undefined) return { url, model, ...(keyFile === undefined ? {} : { keyFile }) };
  if (flags.model === undefined && flags.keyFile === undefined) return undefined;
  const option = flags.model === undefined ? 'judge-key-file' : 'judge-model';
  const value = flags.model ?? flags.keyFile ?? '';
  throw deployErrors.badOption({ option, value, wanted: 'usable without --judge-url, which no start has named' });
}

/** The judge of this start; undefined: words and tools' fields decide, or what the environment names. */
export async function judgeModel(flags: JudgeFlags, kept: KeptJudge | undefined): Promise<JudgeModel | undefined> {
  const named = namedJudge(flags, kept);
  if (named === undefined) return undefined;
  const { url, model, keyFile } = named;
  const key = keyFile === undefined ? '' : keyIn(keyFile, judgeApi);
  const isSaid = flags.url !== undefined || flags.model !== undefined || flags.keyFile !== undefined;
  const own = { url, key, ...(keyFile === undefined ? {} : { keyFile }) };
  const models = await modelsAt({ url, key, keyFile }, judgeApi);
  if ('away' in models) {
    // A judge that was there yesterday may come up after this machine; nothing but votes waits for it.
    if (isSaid) throw refused(url, models.away);
    return { ...own, model, away: models.away };
  }
  return { ...own, model: modelNamed(url, model, models.found, judgeApi), away: '' };
}

const refused = (url: string, why: string) => deployErrors.apiRefused({ option: 'judge-url', url, task: 'judge', why });

const given = ({ model, keyFile }: JudgeFlags) => ({
  ...(model === undefined ? {} : { model }),
  ...(keyFile === undefined ? {} : { keyFile }),
});

/** What judges, and why, in one line. */
export function reasonOfJudge(judge: JudgeModel | undefined, environment: Readonly<Record<string, string>>): string {
  if (judge !== undefined) {
    const { url, model, keyFile, away } = judge;
    const key = keyFile === undefined ? 'no key' : `key of ${keyFile}`;
    const far = isHere(url) ? '' : '; conversations are sent there';
    const now = away === '' ? '' : `; NOT THERE now: ${away}, votes wait`;
    return `${model} at ${url} votes in words (--judge-url; ${key}${far}${now})`;
  }
  // Words ask no model, whatever is named.
  const isAsked = environment['BACKTALK_JUDGE_BACKEND'] === 'free';
  const named = environment['BACKTALK_JUDGE_URL'] ?? '';
  if (isAsked && named !== '') return `votes of ${named} (BACKTALK_JUDGE_URL)`;
  const share = Number(environment['BACKTALK_JUDGE_VOTE_SHARE'] ?? 1);
  if (isAsked && share > 0) return `votes of the serving engine (BACKTALK_JUDGE_VOTE_SHARE ${String(share)})`;
  return "words and tools' fields (the base model's votes are no better; --judge-url URL names a model that reads)";
}
