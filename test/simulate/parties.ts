// Who talks and who scores, as the flags say. In: flags. Out: both, ready, with what is asked of whom; or a refusal that names the
// flag. This is the only place that knows user and scorer at once: it gives each its model, and neither knows of the other.
import type { Output } from '@backtalk/cli';
import { simulateErrors } from './errors.js';
import { AskedModel, type AskedCounts } from './llm/asked-model.js';
import { isSameModel, namedModel, scorerApi, userApi, type NamedModel, type SaidOfModel } from './llm/named-model.js';
import { LlmScorer, type Criteria } from './scorer/llm-scorer.js';
import { startScorer } from './scorer/scorer-process.js';
import { questionsOfBlock } from './scorer/scores.js';
import type { AnswerScorer } from './simulate.js';
import type { Talker } from './talk.js';
import { LlmUser } from './user/llm-user.js';
import { readPersona } from './user/persona-file.js';
import { Random } from './user/random.js';
import { SimulatedUser } from './user/simulated-user.js';
import { readUser, type UserFile } from './user/user-file.js';

export interface PartyFlags {
  readonly user?: string;
  readonly persona?: string;
  readonly llmUrl?: string;
  readonly llmModel?: string;
  readonly llmKeyFile?: string;
  readonly scorerUrl?: string;
  readonly scorerModel?: string;
  readonly scorerKeyFile?: string;
  readonly sameModel?: boolean;
  readonly seed: number;
  /** None: nothing is scored; left out: as many as the user has, 32 at most. */
  readonly questions?: number;
}

export interface Parties {
  readonly user: Talker;
  readonly scorer: AnswerScorer | undefined;
  /** What the person wishes, in one sentence. */
  readonly wish: string;
  readonly heldOut: readonly string[];
  /** Of a session, where the command line says nothing. */
  readonly usual: { readonly turns: number; readonly maxTokens: number };
  /** The models that are asked, by what they do. */
  readonly models: Readonly<Partial<Record<'user' | 'scorer', AskedModel>>>;
  stop(): Promise<void>;
}

/** Who is simulated, before any model is asked. */
interface Cast {
  readonly criteria: Criteria;
  readonly rule: UserFile['rule'] | undefined;
  readonly wish: string;
  readonly heldOut: readonly string[];
  readonly usual: Parties['usual'];
  readonly talker: (player: AskedModel | undefined) => Talker;
}

const usualUser = 'short';
const ofUser = { turns: 2, maxTokens: 48 };
const ofPersona = { turns: 4, maxTokens: 512 };
const wishScale = [
  { score: 0, means: 'not as wished at all' },
  { score: 0.5, means: 'partly as wished' },
  { score: 1, means: 'wholly as wished' },
];

export async function openParties(flags: PartyFlags, signal: AbortSignal, output: Output): Promise<Parties> {
  const cast = castOf(flags, signal);
  const heldOut = measuredOf(flags, cast, output);
  const { player, reader } = await modelsOf(flags);
  for (const [model, does] of [
    [player, 'plays the user'],
    [reader, 'scores'],
  ] as const)
    if (model !== undefined)
      output.complain(`${model.model} at ${model.url} ${does}; what is said in the run is sent there`);
  const user = player && new AskedModel(player, 'user');
  const scorer = reader && new AskedModel(reader, 'scorer');
  const rules =
    scorer !== undefined || flags.questions === 0 || cast.rule === undefined
      ? undefined
      : await startScorer(cast.rule, { signal });
  return {
    user: cast.talker(user),
    scorer:
      flags.questions === 0 || scorer === undefined ? rules : new LlmScorer(cast.criteria, scorer, output, signal),
    wish: cast.wish,
    heldOut,
    usual: cast.usual,
    models: { ...(user && { user }), ...(scorer && { scorer }) },
    stop: async () => {
      await Promise.all([rules?.stop(), user?.close(), scorer?.close()]);
    },
  };
}

function castOf(flags: PartyFlags, signal: AbortSignal): Cast {
  const { user, persona, llmUrl, scorerUrl, questions } = flags;
  const refuse = (name: string, value: string, wanted: string) => simulateErrors.badArgument({ name, value, wanted });
  if (persona === undefined) {
    if (llmUrl !== undefined)
      throw refuse('--llm-url', '…', 'usable without --persona: a model plays no user with a rule');
    return ruledCast(user ?? usualUser, flags);
  }
  if (user !== undefined) throw refuse('--user', user, 'usable beside --persona');
  if (llmUrl === undefined) throw refuse('--persona', persona, 'usable without --llm-url: a model plays it');
  if (scorerUrl === undefined && questions !== 0)
    throw refuse(
      '--persona',
      persona,
      'usable without --scorer-url, since no rule can score for it (--questions 0 only talks)',
    );
  return playedCast(persona, flags, signal);
}

/**
 * The questions that versions are measured with. A model that scores reads each answer by itself; any other ranks questions among those
 * of a block, so that with fewer an answer finds its own more easily.
 */
function measuredOf({ questions, scorerUrl }: PartyFlags, { heldOut }: Cast, output: Output): readonly string[] {
  const different = [...new Set(heldOut)];
  const block = scorerUrl === undefined ? questionsOfBlock : 1;
  if (questions === undefined) {
    if (different.length < block)
      output.complain(
        `this user has ${different.length} held-out questions: an answer finds its own among these, not among ${block}, which is easier`,
      );
    return different.slice(0, questionsOfBlock);
  }
  if (questions <= different.length && questions % block === 0) return different.slice(0, questions);
  const multiple = block === 1 ? '' : `a multiple of ${block} and `;
  const wanted = `${multiple}at most the ${different.length} different held-out questions of this user (0 only talks)`;
  throw simulateErrors.badArgument({ name: '--questions', value: String(questions), wanted });
}

function ruledCast(name: string, { seed }: PartyFlags): Cast {
  const file = readUser(name);
  return {
    criteria: { judges: file.wish, scale: wishScale },
    rule: file.rule,
    wish: file.wish,
    heldOut: file.questions.heldout,
    usual: ofUser,
    talker: () => new SimulatedUser(file, new Random(seed)),
  };
}

function playedCast(name: string, { seed }: PartyFlags, signal: AbortSignal): Cast {
  const file = readPersona(name);
  return {
    criteria: file,
    rule: undefined,
    wish: file.wish,
    heldOut: file.tasks.heldout,
    usual: ofPersona,
    talker: (player) => {
      if (player === undefined)
        throw simulateErrors.badArgument({ name: '--persona', value: name, wanted: 'played by a model' });
      return new LlmUser(file, new Random(seed), player, signal);
    },
  };
}

async function modelsOf(flags: PartyFlags): Promise<{ readonly player?: NamedModel; readonly reader?: NamedModel }> {
  const ofUserModel: SaidOfModel = { url: flags.llmUrl, model: flags.llmModel, keyFile: flags.llmKeyFile };
  const ofScorerModel: SaidOfModel = { url: flags.scorerUrl, model: flags.scorerModel, keyFile: flags.scorerKeyFile };
  const player = await namedModel(ofUserModel, userApi);
  const reader = await namedModel(ofScorerModel, scorerApi);
  if (player !== undefined && reader !== undefined && flags.sameModel !== true && isSameModel(player, reader)) {
    const wanted =
      "another model than the user's: one that scores its own taste shows nothing (--same-model takes it all the same)";
    throw simulateErrors.badArgument({ name: '--scorer-model', value: reader.model, wanted });
  }
  return { ...(player && { player }), ...(reader && { reader }) };
}

/** What became of the calls to a model, in one line. */
export function callsLine(
  whose: string,
  { replies, retries, failed, ...unusable }: AskedCounts,
  takesSeed: boolean,
): string {
  const kinds = Object.entries(unusable).filter(([, times]) => times > 0);
  const useless = kinds.map(([kind, times]) => `${String(times)} ${kind}`).join(', ');
  const seed = takesSeed ? '' : '; its endpoint takes no seed, so its words do not repeat';
  return `${whose}: ${String(replies)} replies${useless === '' ? '' : ` (unusable: ${useless})`}, ${String(retries)} calls tried again, ${String(failed)} without an answer${seed}`;
}
