// Nothing is too long to be read at one sitting.
import ts from 'typescript';
import type { House } from './house.js';
import { source, type Rule } from './rule.js';
import { lineCount, lineOf, nodesOf } from './syntax.js';

const fileLinesMax = 400;
const functionLinesMax = 70;
const mainLinesMax = 25;

function longFunctions(house: House, path: string): string[] {
  return nodesOf(house.tree(path))
    .filter((node) => ts.isFunctionLike(node) && lineCount(node) > functionLinesMax)
    .map(
      (node) =>
        `${path}:${lineOf(node)} has a function of ${lineCount(node)} lines; split it below ${functionLinesMax}.`,
    );
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** A Python function ends where something stands at its own depth again. */
function longPythonFunctions(house: House, path: string): string[] {
  const lines = house.lines(path);
  return lines.flatMap((line, start) => {
    const name = /^\s*(?:async )?def (\w+)/.exec(line)?.[1];
    if (name === undefined) return [];
    const next = lines.findIndex(
      (other, at) => at > start && /^\s*[^\s)\]#]/.test(other) && indentOf(other) <= indentOf(line),
    );
    const body = lines.slice(start, next === -1 ? undefined : next);
    const length = body.findLastIndex((other) => other.trim() !== '') + 1;
    if (length <= functionLinesMax) return [];
    return [`${path}:${start + 1} ${name} has ${length} lines; split it below ${functionLinesMax}.`];
  });
}

export const sizeRules: readonly Rule[] = [
  {
    name: `no source file has more than ${fileLinesMax} lines`,
    broken: { 'services/a/src/domain/long.ts': 'x;\n'.repeat(fileLinesMax + 1) },
    check: (house) =>
      house
        .paths(source)
        .filter((path) => house.lines(path).length > fileLinesMax)
        .map((path) => `${path} has ${house.lines(path).length} lines; give its second question a file of its own.`),
  },
  {
    name: `no function has more than ${functionLinesMax} lines`,
    broken: { 'services/a/src/domain/long.ts': `function f() {\n${'x;\n'.repeat(functionLinesMax)}}` },
    check: (house) =>
      house
        .paths(/\.(ts|mjs)$/)
        .filter((path) => !path.endsWith('.test.ts'))
        .flatMap((path) => longFunctions(house, path)),
  },
  {
    name: `no Python function has more than ${functionLinesMax} lines`,
    broken: {
      'services/worker/src/w/a.py': `def f(\n    a: int,\n) -> None:\n${'    x()\n'.repeat(functionLinesMax)}\ny()\n`,
    },
    check: (house) => house.paths(/\.py$/).flatMap((path) => longPythonFunctions(house, path)),
  },
  {
    name: `no service's main.ts has more than ${mainLinesMax} lines`,
    broken: { 'services/a/src/main.ts': 'x;\n'.repeat(mainLinesMax + 1) },
    check: (house) =>
      house.services
        .map((service) => `services/${service}/src/main.ts`)
        .filter((path) => house.lines(path).length > mainLinesMax)
        .map(
          (path) => `${path} has ${house.lines(path).length} lines; it only reads the environment, starts and waits.`,
        ),
  },
];
