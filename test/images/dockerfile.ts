// A recipe of an image as a list of instructions. In: its text, or its name. Out: what each stage copies and runs.
// It reads as much of the language as our recipes use.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';

export interface Instruction {
  readonly word: string;
  readonly rest: string;
}

export interface Stage {
  readonly base: string;
  readonly name: string;
  readonly instructions: readonly Instruction[];
}

function readDockerfile(text: string): Stage[] {
  const stages: { base: string; name: string; instructions: Instruction[] }[] = [];
  for (const { word, rest } of instructionsOf(text)) {
    if (word === 'FROM') {
      const [base = '', , name = ''] = rest.split(/\s+/);
      stages.push({ base, name, instructions: [] });
    } else stages.at(-1)?.instructions.push({ word, rest });
  }
  return stages;
}

function instructionsOf(text: string): Instruction[] {
  const lines = text
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [, word = '', rest = ''] = /^(\w+)\s+(\S.*)$/.exec(line) ?? [];
    return { word: word.toUpperCase(), rest: rest.trim() };
  });
}

/** What COPY takes from the folder of the build, and where to; nothing of other stages. */
export function copies({ instructions }: Stage): { sources: string[]; target: string }[] {
  return instructions
    .filter(({ word, rest }) => word === 'COPY' && !rest.includes('--from='))
    .map(({ rest }) => {
      const words = rest.split(/\s+/).filter((part) => !part.startsWith('--'));
      return { sources: words.slice(0, -1), target: words.at(-1) ?? '' };
    });
}

export function only({ instructions }: Stage, word: string): string {
  return instructions.findLast((instruction) => instruction.word === word)?.rest ?? '';
}

const recipes = join(repositoryRoot(), 'deploy', 'images');

const textOf = (name: string) => readFileSync(join(recipes, `${name}.Dockerfile`), 'utf8');

/** The images that a recipe starts from, as they are without any build argument; none of its own stages. */
export function imagesOf(name: string): string[] {
  const stages = readDockerfile(textOf(name));
  const given = instructionsOf(textOf(name)).filter(({ word }) => word === 'ARG');
  const bases = stages.map(({ base }) => {
    const argument = /^\$\{(\w+)\}$/.exec(base)?.[1];
    if (argument === undefined) return base;
    return given.find(({ rest }) => rest.startsWith(`${argument}=`))?.rest.slice(argument.length + 1) ?? '';
  });
  return bases.filter((base) => !stages.some((stage) => stage.name === base));
}

/** The stages of a recipe: those that build, and what is left. */
export function stagesOf(name: string): { readonly building: readonly Stage[]; readonly last: Stage } {
  const stages = readDockerfile(textOf(name));
  const last = stages.at(-1);
  if (last === undefined) throw new RangeError(`${name} has no stage.`);
  return { building: stages.slice(0, -1), last };
}
