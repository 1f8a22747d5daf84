// What the learning experiment is asked for: which parts, whose wishes, how much of each. In: arguments. Out: a plan, or a refusal.
import { parseArgs } from 'node:util';
import { join, resolve } from 'node:path';
import { deviceFlag, type DeviceFlag } from '@backtalk/deploy';
import { root } from '../../loop/machine.js';
import { questionsOfBlock } from '../../simulate/scorer/scores.js';
import { benchErrors } from '../errors.js';

export const partNames = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'] as const;
export type PartName = (typeof partNames)[number];

/** How much is done and measured; results of different sizes are never compared. */
export interface Sizes {
  /** Versions of each block. */
  readonly steps: number;
  /** A version is measured after so many steps. */
  readonly every: number;
  /** Held-out questions of each wish, in whole blocks. */
  readonly questions: number;
  /** Answers to each. */
  readonly samples: number;
}

export interface LearningPlan {
  readonly help: boolean;
  readonly json: boolean;
  readonly parts: readonly PartName[];
  /** Wishes that are learned alone; the first is also that of the controls, of mixed temperatures, hostile feedback and methods. */
  readonly users: readonly string[];
  /** Wishes that are learned in turn. */
  readonly turns: readonly string[];
  /** Two wishes that exclude each other. */
  readonly opposites: readonly [string, string];
  readonly seeds: readonly number[];
  readonly sizes: Sizes;
  /** Folder of the base model; the laptop's own when it is undefined. */
  readonly model: string | undefined;
  /** Where steps compute; the CPU when it is undefined. */
  readonly device: DeviceFlag | undefined;
  readonly results: string;
  readonly document: string;
}

export const helpText = `Usage: npm run bench:learning -- [options]

Simulated users talk through the running system, and versions are measured on questions that they never ask. Each part's result
is kept, so that a stopped run goes on where it was; docs/learning.md is written from all that is kept. Nothing is asserted.

Parts:
  a  each wish alone                       d  a person who changes their mind
  b  wishes in turn, then all together     e  controls: a teacher of another wish, and no teacher
  c  opposite wishes of two people         f  temperatures .1 and .8 mixed
  g  hostile feedback in three of ten         h  the methods side by side: binary, opd sampled, topk and
     sessions, from ten keys                     full, hybrid (first third, taught by itself,
                                                 by its average), constant KL, and (a)
  i  one correction, and then silence      j  attempts at tasks that an environment checks, and no word

Options:
  --full               five seeds, eight wishes alone, six in turn, more steps and answers (quick: one seed)
  --only a,b,c         only these parts
  --users A,B          wishes that are learned alone: names in test/simulate/users, or files
  --turns A,B,C        wishes that are learned in turn
  --opposites A,B      two wishes that exclude each other
  --seeds 1,2          instead of those above
  --steps N            versions of each block
  --every N            steps from one measurement to the next
  --questions N        held-out questions of each wish, in blocks of ${String(questionsOfBlock)}
  --samples N          answers to each
  --model DIR          folder of another base model
  --device DEVICE      where steps compute: cpu, cuda, or auto (default: cpu)
  --results DIR        where results are kept; an empty folder measures anew (default: docs/learning/results)
  --document FILE      where they are written up       (default: docs/learning.md)
  --json               results as JSON on standard output; progress goes to standard error
  --help               this text`;

const eight = 'bullet-points,emoji,name,numbered,one-sentence,opening,quotes,small-letters';
const six = 'numbered,emoji,small-letters,one-sentence,name,bullet-points';
const quick = {
  users: 'one-sentence,emoji',
  turns: 'one-sentence,emoji,name',
  seeds: '1',
  steps: '8',
  every: '4',
  questions: '32',
  samples: '1',
};
const full = { users: eight, turns: six, seeds: '1,2,3,4,5', steps: '10', every: '2', questions: '32', samples: '2' };
const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;

function parse(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      options: {
        help: { type: 'boolean', short: 'h', default: false },
        json: flag,
        full: flag,
        only: { type: 'string', default: partNames.join(',') },
        users: text,
        turns: text,
        opposites: { type: 'string', default: 'bullet-points,numbered' },
        seeds: text,
        steps: text,
        every: text,
        questions: text,
        samples: text,
        model: text,
        device: text,
        results: { type: 'string', default: join(root, 'docs', 'learning', 'results') },
        document: { type: 'string', default: join(root, 'docs', 'learning.md') },
      },
    }).values;
  } catch (error) {
    throw benchErrors.usage({ why: error instanceof Error ? error.message : String(error) }, error);
  }
}

export function readPlan(argv: readonly string[]): LearningPlan {
  const given = parse(argv);
  const usual = given.full ? full : quick;
  const number = (name: 'steps' | 'every' | 'samples') => whole(name, given[name] ?? usual[name]);
  return {
    help: given.help,
    json: given.json,
    parts: listed(given.only).map(partOf),
    users: listed(given.users ?? usual.users),
    turns: listed(given.turns ?? usual.turns),
    opposites: pairOf(listed(given.opposites)),
    seeds: listed(given.seeds ?? usual.seeds).map((seed) => whole('seeds', seed)),
    sizes: {
      steps: number('steps'),
      every: number('every'),
      questions: inBlocks('questions', given.questions ?? usual.questions),
      samples: number('samples'),
    },
    model: given.model === undefined ? undefined : resolve(given.model),
    device: given.device === undefined ? undefined : deviceFlag(given.device),
    results: resolve(given.results),
    document: resolve(given.document),
  };
}

function listed(list: string): string[] {
  return list
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

function whole(name: string, value: string): number {
  const number = Number(value);
  if (Number.isSafeInteger(number) && number >= 1) return number;
  throw benchErrors.usage({ why: `--${name} takes whole numbers above 0, and not '${value}'.` });
}

function inBlocks(name: string, value: string): number {
  const number = whole(name, value);
  if (number % questionsOfBlock === 0) return number;
  const block = String(questionsOfBlock);
  throw benchErrors.usage({ why: `--${name} takes whole blocks of ${block} (${block}, 64), and not '${value}'.` });
}

function partOf(name: string): PartName {
  const known = partNames.find((part) => part === name);
  if (known === undefined) throw benchErrors.usage({ why: `There is no part '${name}'.` });
  return known;
}

function pairOf([first, second, ...more]: readonly string[]): readonly [string, string] {
  if (first !== undefined && second !== undefined && more.length === 0) return [first, second];
  throw benchErrors.usage({ why: '--opposites takes two wishes.' });
}
