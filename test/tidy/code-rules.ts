// What no line of code does.
import ts from 'typescript';
import type { House } from './house.js';
import { productionPaths, testCode, typescript, type Rule } from './rule.js';
import { calleeOf, importsOf, lineOf, nodesOf } from './syntax.js';

const plainErrorShareMax = 0.03;
const environmentReaders = 'services/lib/kit/src/config/';
const clockTest = 'services/lib/kit/src/time/clock.test.ts';

function problemsAt(
  house: House,
  paths: readonly string[],
  isBad: (node: ts.Node) => boolean,
  advice: string,
): string[] {
  return paths.flatMap((path) =>
    nodesOf(house.tree(path))
      .filter(isBad)
      .map((node) => `${path}:${lineOf(node)} ${advice}`),
  );
}

function isPlainError(thrown: ts.ThrowStatement): boolean {
  return (
    ts.isNewExpression(thrown.expression) &&
    /^(Error|TypeError|RangeError)$/.test(thrown.expression.expression.getText())
  );
}

function plainErrorProblems(house: House): string[] {
  const throws = productionPaths(house).flatMap((path) =>
    nodesOf(house.tree(path))
      .filter((node) => ts.isThrowStatement(node))
      .map((node) => ({ path, node })),
  );
  const plain = throws.filter(({ node }) => isPlainError(node));
  if (plain.length <= throws.length * plainErrorShareMax) return [];
  return plain.map(
    ({ path, node }) => `${path}:${lineOf(node)} throws a plain error; take one from the error catalogue.`,
  );
}

/** A test that sleeps is slow when all is well and fails when the machine is busy. */
function isSleep(node: ts.Node): boolean {
  return ts.isCallExpression(node) && /^(setTimeout|setInterval|systemClock\.sleep|sleep|delay)$/.test(calleeOf(node));
}

function importsTimers(house: House, path: string): string[] {
  return importsOf(house.tree(path))
    .filter(({ specifier, names }) => specifier === 'node:timers/promises' && names.includes('setTimeout'))
    .map(({ line }) => `${path}:${line} imports a sleep; wait for a condition or an event (until, FakeClock).`);
}

/** `process.env` and `const { env } = process`. */
function readsEnvironment(node: ts.Node): boolean {
  if (ts.isPropertyAccessExpression(node)) return /^(globalThis\.)?process\.env$/.test(node.getText());
  if (ts.isElementAccessExpression(node)) return /^process\[['"`]env/.test(node.getText());
  return ts.isVariableDeclaration(node) && node.initializer?.getText() === 'process';
}

function isReexport(statement: ts.Statement): boolean {
  return ts.isExportDeclaration(statement) && statement.moduleSpecifier !== undefined;
}

export const codeRules: readonly Rule[] = [
  {
    name: 'nothing is `any`',
    broken: { 'services/a/src/domain/x.ts': 'let a: any;' },
    check: (house) =>
      problemsAt(
        house,
        house.paths(typescript),
        (node) => node.kind === ts.SyntaxKind.AnyKeyword,
        'says any; say what it is.',
      ),
  },
  {
    name: 'nothing is declared to be there by `!`',
    broken: { 'services/a/src/domain/x.ts': 'const a = b!;' },
    check: (house) =>
      problemsAt(
        house,
        house.paths(typescript),
        (node) => ts.isNonNullExpression(node),
        'uses !; handle the absent case.',
      ),
  },
  {
    name: `at most ${plainErrorShareMax * 100} % of throws throw a plain error`,
    broken: { 'services/a/src/domain/x.ts': "throw new Error('no');" },
    check: plainErrorProblems,
  },
  {
    name: 'only the kit’s configuration reads the environment',
    broken: { 'services/a/src/config.ts': 'const a = process.env.X;\nconst { env } = process;' },
    check: (house) =>
      problemsAt(
        house,
        house.paths(typescript).filter((path) => !path.startsWith(environmentReaders)),
        readsEnvironment,
        'reads process.env; write a setting in config.ts.',
      ),
  },
  {
    name: 'no test sleeps',
    broken: {
      'services/a/src/domain/x.test.ts': "import { setTimeout } from 'node:timers/promises';\nawait setTimeout(9);",
    },
    check: (house) => {
      const tests = house.paths(/\.test\.ts$/).filter((path) => path !== clockTest);
      const advice = 'sleeps; wait for a condition or an event (until, FakeClock).';
      return [...tests.flatMap((path) => importsTimers(house, path)), ...problemsAt(house, tests, isSleep, advice)];
    },
  },
  {
    name: 'no Python test sleeps',
    broken: { 'services/worker/tests/test_a.py': 'time.sleep(1)' },
    check: (house) =>
      house
        .paths(/(^|\/)test_[^/]*\.py$/)
        .filter((path) => /\b(time|asyncio)\.sleep\((?!0\))/.test(house.text(path)))
        .map((path) => `${path} sleeps; wait for a condition or an event.`),
  },
  {
    name: 'an index.ts only re-exports',
    broken: { 'services/a/src/index.ts': 'export const a = 1;' },
    check: (house) =>
      house
        .paths(/(^|\/)index\.ts$/)
        .filter((path) => !testCode.test(path) || path.includes('/testing/'))
        .filter((path) => !house.tree(path).statements.every(isReexport))
        .map((path) => `${path} does something itself; give that a file with a name.`),
  },
];
