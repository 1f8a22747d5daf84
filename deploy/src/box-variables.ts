// The variables of OpenClaw-RL's launch scripts that a start on cards reads. In: the environment. Out: what they ask for; or one
// line that says which one cannot be read. What becomes of the scripts' other variables stands in docs/gpu.md.
import { environmentOf } from '@backtalk/kit';
import { deployErrors } from './errors.js';

/** Whole numbers, each with the least that it may be. */
const numbers = {
  NUM_GPUS: 1,
  ACTOR_GPUS: 0,
  ROLLOUT_GPUS: 0,
  PRM_GPUS: 0,
  TP: 1,
  CONTEXT_LENGTH: 1_024,
  PRM_M: 1,
} as const;
const texts = ['HF_CKPT', 'PRM_MODEL_PATH', 'SAVE_CKPT', 'SERVED_MODEL_NAME', 'PORT', 'SGLANG_API_KEY'] as const;
const votesMax = 15;

type NumberName = keyof typeof numbers;
type TextName = (typeof texts)[number];

/** What was said; what is left out was not, or is empty. */
export type BoxSaid = Readonly<
  Partial<Record<NumberName, number> & Record<TextName, string> & Record<'MEM_FRACTION_STATIC', number>>
>;

const isNumberName = (name: string): name is NumberName => name in numbers;
const numberNames = Object.keys(numbers).filter(isNumberName);

export const boxVariables: readonly string[] = [...numberNames, 'MEM_FRACTION_STATIC', ...texts];

export function boxSaid(environment: Readonly<Record<string, string>> = environmentOf(boxVariables)): BoxSaid {
  const said = (name: string) => {
    const value = environment[name]?.trim() ?? '';
    return value === '' ? undefined : value;
  };
  const share = said('MEM_FRACTION_STATIC');
  return {
    ...given<number>(numberNames.map((name) => [name, wholeNumber(name, said(name))])),
    ...(share === undefined ? {} : { MEM_FRACTION_STATIC: shareOf(share) }),
    ...given<string>(texts.map((name) => [name, said(name)])),
  };
}

const given = <T>(pairs: readonly (readonly [string, T | undefined])[]): Readonly<Record<string, T>> =>
  Object.fromEntries(pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));

function wholeNumber(name: NumberName, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const least = numbers[name];
  const number = Number(value);
  const isFit = /^\d{1,7}$/.test(value) && number >= least && (name !== 'PRM_M' || number <= votesMax);
  if (isFit) return number;
  const most = name === 'PRM_M' ? ` to ${votesMax}` : ' or more';
  throw deployErrors.boxRefused({ why: `${name}=${value} is no whole number of ${least}${most}` });
}

function shareOf(value: string): number {
  const share = Number(value);
  if (share > 0 && share < 1) return share;
  throw deployErrors.boxRefused({ why: `MEM_FRACTION_STATIC=${value} is no share of a card's memory between 0 and 1` });
}
