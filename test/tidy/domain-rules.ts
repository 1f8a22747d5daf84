// Domain code is pure: no input or output, no clock, no chance, no logger. That is why its tests need no waiting.
import ts from 'typescript';
import type { House } from './house.js';
import { productionPaths, type Rule } from './rule.js';
import { importsOf, lineOf, nodesOf } from './syntax.js';

const domain = /^services\/[^/]+\/src\/domain\//;

/** Modules that hold pure and impure things, and the pure ones: from a value to a value, the same each time. */
const pureNames: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  [
    '@backtalk/kit',
    new Set([
      'BacktalkError',
      'asBacktalkError',
      'baseVersion',
      'burnedInARow',
      'clip',
      'childTrace',
      'decodeConversation',
      'givenUpBy',
      'givenUpInARow',
      'isBacktalkError',
      'isBaseVersion',
      'isFirstJudgement',
      'isHeld',
      'isJsonObject',
      'JsonScan',
      'isObservation',
      'inForce',
      'isLeftOut',
      'coverOf',
      'personLessonsMax',
      'shownMax',
      'inScope',
      'isInForce',
      'isShown',
      'effectOf',
      'lessonProgress',
      'measuresTogether',
      'progressOf',
      'farFrom',
      'weightsHold',
      'asWording',
      'wholeWords',
      'hintedMessages',
      'ownWish',
      'lastHumanMessage',
      'nextStateBounds',
      'oneLine',
      'personWords',
      'templateTokenIn',
      'textsIn',
      'wordingCharsMax',
      'wordsIn',
      'keyGrant',
      'policiesOf',
      'tenantsOf',
      'tenantHash',
      'userHash',
      'keyedHash',
      'madeAtMs',
      'sha256Hex',
      'traceFrom',
      'versionName',
      'versionNumber',
      'versionParts',
    ]),
  ],
  ['node:buffer', new Set(['isUtf8'])],
  ['node:crypto', new Set(['createHash', 'createHmac', 'hash', 'timingSafeEqual'])],
  ['node:zlib', new Set(['crc32'])],
]);

const purePackages = /^(@backtalk\/((proto|dialects)(\/|$)|kit\/pure$)|zod$|json5$|stopword$)/;

/** Written with a dot or called, these read the clock, roll dice or wait. */
const impure =
  /^(Date\.now|Math\.random|performance\.now|crypto\.randomUUID|setTimeout|setInterval|setImmediate|fetch)$/;

function importProblems(house: House, path: string): string[] {
  return importsOf(house.tree(path))
    .filter(({ typeOnly, specifier }) => !typeOnly && !specifier.startsWith('.') && !purePackages.test(specifier))
    .flatMap(({ specifier, names, line }) => {
      const impureNames = names.filter((name) => pureNames.get(specifier)?.has(name) !== true);
      return impureNames.map(
        (name) => `${path}:${line} imports ${name} of ${specifier}; domain code gets values, and gives values.`,
      );
    });
}

function callProblems(house: House, path: string): string[] {
  return nodesOf(house.tree(path))
    .filter((node) => isImpureCall(node) || isNowDate(node))
    .map((node) => `${path}:${lineOf(node)} uses ${node.getText()}; let the caller pass the time or the chance.`);
}

function isImpureCall(node: ts.Node): boolean {
  return ts.isCallExpression(node) && impure.test(node.expression.getText());
}

function isNowDate(node: ts.Node): boolean {
  return ts.isNewExpression(node) && node.expression.getText() === 'Date' && (node.arguments?.length ?? 0) === 0;
}

export const domainRules: readonly Rule[] = [
  {
    name: 'domain code imports only domain code, wire types and what is pure of the kit',
    broken: {
      'services/a/src/domain/x.ts': "import { systemClock } from '@backtalk/kit';\nimport { readFile } from 'node:fs';",
    },
    check: (house) => productionPaths(house, domain).flatMap((path) => importProblems(house, path)),
  },
  {
    name: 'domain code asks neither clock nor chance',
    broken: { 'services/a/src/domain/x.ts': 'const a = Date.now();\nconst b = new Date();' },
    check: (house) => productionPaths(house, domain).flatMap((path) => callProblems(house, path)),
  },
];
