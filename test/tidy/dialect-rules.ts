// One dialect: whoever has read one file of the house can read them all. CONTRIBUTING.md has the list in words.
import { posix } from 'node:path';
import ts from 'typescript';
import type { House } from './house.js';
import { productionPaths, testCode, typescript, type Rule } from './rule.js';
import { calleeOf, callsOf, importsOf, lineOf, literalText, nodesOf } from './syntax.js';

const smallFileLines = 25;
/** What comes in is listed by its files: a route or a command has one of its own, however small. */
const standsAlone = /\/(main|errors)\.ts$|\.d\.ts$|\/(inputs|commands)\//;
/** A comment for a tool is no documentation. */
const directive = /^\/\/ ?(eslint|@ts-|prettier-ignore|#)/;
const snakeCase = /^[a-z0-9]+(_[a-z0-9]+)*$/;
const upperSnake = /^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$|^[A-Z]{3,}$/;
/** Words of a private language, and what the field says in their place. */
const privateWords: readonly (readonly [RegExp, string])[] = [
  [/\b(somebody|nobody|whoever)\b/i, 'who it is: client, caller, reader, operator'],
  [/\bin hand\b/i, 'in flight'],
  [/\bfor ever\b/i, 'without end, or until when'],
  [/\b(desk|bell|ballots?|turnstile)\b/i, 'state, wake-up signal, votes, mutex'],
];

/** What continues the title of the suite and starts no statement of its own. */
const tail = new RegExp(
  `^(${[
    'is|are|was|were|be|has|have|had|does|do|did|may|can|cannot|must|will|would|should',
    'that|which|who|whose|when|where|while|if|because|than|and|or|but|also',
    'of|with|without|to|on|by|at|in|for|from|as|under|it|its|they|their',
  ].join('|')})\\b`,
);

function headerProblems(house: House, path: string): string[] {
  const text = house.text(path);
  const first = house.tree(path).statements[0];
  if (first === undefined) return [];
  const block = /^\/\*\*[\s\S]*?\*\//.exec(text)?.[0];
  const isDetached =
    block !== undefined && (ts.isImportDeclaration(first) || /^\s*\n\s*\n/.test(text.slice(block.length)));
  if (isDetached) return [`${path}:1 has a header in /** */; a header is // lines.`];
  if (/^(\/\/[^\n]*\n)+\n+import /.test(text)) return [`${path}:1 has a blank line between header and imports.`];
  return [];
}

function isPrivateField(node: ts.Node): boolean {
  return ts.isPrivateIdentifier(node) && ts.isClassElement(node.parent);
}

function upperCaseConstants(house: House, path: string): string[] {
  return nodesOf(house.tree(path))
    .filter((node) => ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node))
    .filter((node) => upperSnake.test(node.name.getText()))
    .map((node) => `${path}:${lineOf(node)} writes ${node.name.getText()}; constants are camelCase.`);
}

/** Declarations and members whose comment editors would not show. */
function hiddenDocumentation(house: House, path: string): string[] {
  const text = house.text(path);
  const tree = house.tree(path);
  return nodesOf(tree)
    .filter((node) => isDocumentable(node))
    .flatMap((node) => {
      const comment = ts.getLeadingCommentRanges(text, node.getFullStart())?.at(-1);
      if (comment === undefined || comment.kind !== ts.SyntaxKind.SingleLineCommentTrivia) return [];
      const isAttached =
        text.slice(comment.end, node.getStart(tree)).trim() === '' &&
        !/\n\s*\n/.test(text.slice(comment.end, node.getStart(tree)));
      const isTrailing = text.slice(text.lastIndexOf('\n', comment.pos - 1) + 1, comment.pos).trim() !== '';
      if (!isAttached || isTrailing || directive.test(text.slice(comment.pos, comment.end))) return [];
      return [`${path}:${lineOf(node)} is documented with //; write /** */, which editors show.`];
    });
}

function isDocumentable(node: ts.Node): boolean {
  if (ts.isTypeElement(node) || ts.isClassElement(node)) return true;
  if (ts.isSourceFile(node)) return false;
  return (
    ts.isSourceFile(node.parent) &&
    (ts.isDeclarationStatement(node) || ts.isVariableStatement(node)) &&
    !isImportOrExport(node)
  );
}

function isImportOrExport(node: ts.Node): boolean {
  return ts.isImportDeclaration(node) || ts.isExportDeclaration(node);
}

function eventNameProblems(house: House, path: string): string[] {
  return callsOf(house.tree(path))
    .filter((call) => /\blogger\.(debug|info|warn|error)$/.test(calleeOf(call)))
    .map((call) => ({ call, name: literalText(call.arguments[0]) }))
    .filter(({ name }) => name !== undefined && !snakeCase.test(name))
    .map(({ call, name }) => `${path}:${lineOf(call)} logs '${name ?? ''}'; log events are snake_case.`);
}

interface NamedExport {
  readonly file: string;
  readonly pattern: RegExp;
  readonly wanted: string;
}

const wantedNames: readonly NamedExport[] = [
  {
    file: 'errors.ts',
    pattern: /^export const [a-z]\w*Errors = defineErrors\(/m,
    wanted: '`export const xErrors = defineErrors(…)`',
  },
  { file: 'config.ts', pattern: /^export const [a-z]\w*Settings = /m, wanted: '`export const xSettings = …`' },
  {
    file: 'events.ts',
    pattern: /^export function createEvents\(/m,
    wanted: '`export function createEvents(logger, metrics)`',
  },
  {
    file: 'main.ts',
    pattern: /create: \(config, \{ fail \}\) =>/,
    wanted: '`create: (config, { fail }) => …`, so that a fatal error ends the process',
  },
  {
    file: 'service.ts',
    pattern: /\bcreateService[<(]/,
    wanted: 'the kit’s `createService(…)`, the one start-up of all services',
  },
];

function nameProblems(house: House): string[] {
  return house.services.flatMap((service) =>
    wantedNames
      .map(({ file, ...rest }) => ({ path: `services/${service}/src/${file}`, ...rest }))
      .filter(({ path, pattern }) => house.has(path) && !pattern.test(house.text(path)))
      .map(({ path, wanted }) => `${path} lacks ${wanted}.`),
  );
}

function isLiteralSpread(node: ts.Node): boolean {
  return ts.isSpreadAssignment(node) && ts.isObjectLiteralExpression(node.expression);
}

/** Files that cost a look and carry little, unless two others share what they export. */
function smallFileProblems(house: House): string[] {
  const paths = productionPaths(house, /^(services|deploy)\//).filter((path) => !path.endsWith('/index.ts'));
  const imported = new Map(paths.map((path) => [path, importedNames(house.tree(path))]));
  const usersOf = (path: string) => {
    const own = exportedNames(house.tree(path));
    return paths.filter((other) => other !== path && own.some((name) => imported.get(other)?.has(name))).length;
  };
  return paths
    .filter((path) => house.lines(path).length < smallFileLines && !standsAlone.test(path))
    .filter((path) => usersOf(path) < 2)
    .map(
      (path) => `${path} has ${house.lines(path).length} lines and one user; merge it into the file that it serves.`,
    );
}

/** Of types too. */
function importedNames(tree: ts.SourceFile): ReadonlySet<string> {
  return new Set(
    nodesOf(tree)
      .filter(ts.isImportSpecifier)
      .map((specifier) => (specifier.propertyName ?? specifier.name).text),
  );
}

function exportedNames(tree: ts.SourceFile): string[] {
  return tree.statements
    .filter(
      (statement) =>
        ts.canHaveModifiers(statement) && ts.getModifiers(statement)?.[0]?.kind === ts.SyntaxKind.ExportKeyword,
    )
    .flatMap((statement) =>
      ts.isVariableStatement(statement)
        ? statement.declarationList.declarations.map(({ name }) => name.getText())
        : ts.isDeclarationStatement(statement)
          ? [statement.name?.getText() ?? '']
          : [],
    );
}

function targetOf(path: string, specifier: string): string {
  return posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts');
}

/** Folders of the kit that import each other: a wall that is not there. */
function folderCircles(house: House): string[] {
  const kit = /^services\/lib\/kit\/src\//;
  const folderOf = (path: string) => /^services\/lib\/kit\/src\/([^/]+)\//.exec(path)?.[1] ?? '';
  const edges = new Map<string, Set<string>>();
  for (const path of productionPaths(house, kit).filter((file) => folderOf(file) !== '')) {
    const known = edges.get(folderOf(path)) ?? new Set<string>();
    for (const { specifier } of importsOf(house.tree(path))) {
      const target = folderOf(targetOf(path, specifier));
      if (specifier.startsWith('.') && target !== '' && target !== folderOf(path)) known.add(target);
    }
    edges.set(folderOf(path), known);
  }
  const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
    [...(edges.get(from) ?? [])].some((next) => next === to || (!seen.has(next) && reaches(next, to, seen.add(next))));
  return [...edges.keys()]
    .filter((folder) => reaches(folder, folder))
    .map((folder) => `services/lib/kit/src/${folder} is part of a circle of folders.`);
}

function privateWordProblems(house: House, path: string): string[] {
  return house
    .lines(path)
    .flatMap((line, at) =>
      privateWords
        .filter(([word]) => word.test(line))
        .map(([word, better]) => `${path}:${at + 1} says ${word.exec(line)?.[0] ?? ''}; say ${better}.`),
    );
}

/** `it('…')`, `test('…')` and their kin, `it.each(…)('…')` among them. */
function titleProblems(house: House, path: string): string[] {
  return callsOf(house.tree(path))
    .filter((call) => /^(it|test)\b/.test(calleeOf(call)))
    .map(({ arguments: [title] }) => title)
    .filter((title) => title !== undefined && (ts.isStringLiteralLike(title) || ts.isTemplateExpression(title)))
    .filter((title) => tail.test(title.getText().slice(1)))
    .map((title) => `${path}:${lineOf(title)} names a test ${title.getText()}; put its subject in.`);
}

export const dialectRules: readonly Rule[] = [
  {
    name: 'a file’s header is // lines, directly before its imports',
    broken: {
      'services/a/src/domain/x.ts': "/** What it is. */\nimport { y } from './y.js';",
      'services/a/src/domain/z.ts': "// What it is.\n\nimport { y } from './y.js';",
    },
    check: (house) => house.paths(typescript).flatMap((path) => headerProblems(house, path)),
  },
  {
    name: 'private members are private, not #',
    broken: { 'services/a/src/domain/x.ts': 'class A { #b = 1; }' },
    check: (house) =>
      house.paths(typescript).flatMap((path) =>
        nodesOf(house.tree(path))
          .filter(isPrivateField)
          .map((node) => `${path}:${lineOf(node)} declares ${node.getText()}; write private.`),
      ),
  },
  {
    name: 'constants are camelCase',
    broken: { 'services/a/src/domain/x.ts': 'const WAIT_MS = 1;' },
    check: (house) => house.paths(typescript).flatMap((path) => upperCaseConstants(house, path)),
  },
  {
    name: 'members and declarations are documented where editors show it',
    broken: { 'services/a/src/domain/x.ts': 'export interface A {\n  // In seconds.\n  b: number;\n}' },
    check: (house) => productionPaths(house).flatMap((path) => hiddenDocumentation(house, path)),
  },
  {
    name: 'errors, settings, events and start-up have the same name in every service',
    broken: { 'services/a/src/events.ts': 'export function aEvents() {}' },
    check: nameProblems,
  },
  {
    name: 'log events are snake_case',
    broken: { 'services/a/src/events.ts': "logger.info('turn continued');" },
    check: (house) => productionPaths(house).flatMap((path) => eventNameProblems(house, path)),
  },
  {
    name: 'no literal is spread into a literal',
    broken: { 'services/a/src/domain/x.ts': 'const a = { ...{ b, c }, d };' },
    check: (house) =>
      house.paths(typescript).flatMap((path) =>
        nodesOf(house.tree(path))
          .filter(isLiteralSpread)
          .map((node) => `${path}:${lineOf(node)} spreads a literal; write its members, which the compiler checks.`),
      ),
  },
  {
    name: `a file of fewer than ${smallFileLines} lines is shared by two others`,
    broken: {
      'services/a/src/domain/x.ts': 'export const a = 1;',
      'services/a/src/domain/y.ts': `import { a } from './x.js';\n${'a;\n'.repeat(smallFileLines)}`,
    },
    check: smallFileProblems,
  },
  {
    name: 'no folders of the kit import each other in a circle',
    broken: {
      'services/lib/kit/src/a/x.ts': "import { y } from '../b/y.js';",
      'services/lib/kit/src/b/y.ts': "import { x } from '../a/x.js';",
    },
    check: folderCircles,
  },
  {
    name: 'the house speaks the field’s words',
    broken: { 'services/a/src/domain/x.ts': '// What somebody has in hand.' },
    check: (house) =>
      productionPaths(house)
        .filter((path) => !testCode.test(path))
        .flatMap((path) => privateWordProblems(house, path)),
  },
  {
    name: 'a test’s title reads alone',
    broken: {
      'services/a/src/domain/x.test.ts':
        "describe('a key', () => { it.each([1])('that was revoked is refused', f); });",
    },
    check: (house) => house.paths(typescript).flatMap((path) => titleProblems(house, path)),
  },
];
