// Python is as short as the linter wants TypeScript to be.
import type { House } from './house.js';
import type { Rule } from './rule.js';

const fileLinesMax = 400;
const functionLinesMax = 70;
const mainLinesMax = 25;

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

/** What tools leave behind: packages, archives, logs, and what a merge could not decide. */
const leftBehind = /\.(?:whl|tgz|tar|gz|zip|deb|log|orig|rej)$/;

export const sizeRules: readonly Rule[] = [
  {
    name: 'no package, archive or log lies in the tree',
    broken: { 'test/pexpect-4.9.0-py2.py3-none-any.whl': 'PK' },
    check: (house) => house.paths(leftBehind).map((path) => `${path} is no source; take it out.`),
  },
  {
    name: `no Python file has more than ${fileLinesMax} lines`,
    broken: { 'services/worker/src/w/long.py': 'x()\n'.repeat(fileLinesMax + 1) },
    check: (house) =>
      house
        .paths(/\.py$/)
        .filter((path) => house.lines(path).length > fileLinesMax)
        .map((path) => `${path} has ${house.lines(path).length} lines; give its second question a file of its own.`),
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
