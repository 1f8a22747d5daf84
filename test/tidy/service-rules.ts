// Reading one service teaches all of them: the eight names, and which way imports go.
import { posix } from 'node:path';
import type { House } from './house.js';
import { testCode, type Rule } from './rule.js';
import { importsOf, type Import } from './syntax.js';

const eightNames = [
  'main.ts',
  'service.ts',
  'config.ts',
  'errors.ts',
  'events.ts',
  'inputs',
  'domain',
  'outputs',
] as const;

/** The package's front door (which only re-exports) and what its tests build upon may stand beside them. */
const extraNames: ReadonlySet<string> = new Set<string>([...eightNames, 'index.ts', 'testing']);

const pythonNames = [
  'main.py',
  'service.py',
  'config.py',
  'errors.py',
  'events.py',
  'inputs',
  'domain',
  'outputs',
] as const;
const pythonExtraNames: ReadonlySet<string> = new Set<string>([
  ...pythonNames,
  '__init__.py',
  '__main__.py',
  'bench.py',
  'py.typed',
]);

/** Which of its own places each place may import at run time. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  'main.ts': ['service.ts', 'config.ts'],
  'service.ts': ['config.ts', 'errors.ts', 'events.ts', 'inputs', 'domain', 'outputs'],
  'config.ts': ['domain'],
  'errors.ts': [],
  'events.ts': ['errors.ts', 'domain'],
  inputs: ['errors.ts', 'domain', 'inputs'],
  domain: ['errors.ts', 'domain'],
  outputs: ['errors.ts', 'domain', 'outputs'],
  'index.ts': [...eightNames],
};

function topNames(house: House, folder: string): string[] {
  const inside = house
    .paths(new RegExp(`^${folder}/`))
    .map((path) => path.slice(folder.length + 1).split('/')[0] ?? '');
  return [...new Set(inside)];
}

function namesProblems(
  present: readonly string[],
  folder: string,
  wanted: readonly string[],
  extra: ReadonlySet<string>,
): string[] {
  const missing = wanted.filter((name) => !present.includes(name)).map((name) => `${folder} has no ${name}.`);
  const strange = present
    .filter((name) => !extra.has(name) && !name.includes('.test.'))
    .map((name) => `${folder}/${name} is none of the eight names: ${wanted.join(', ')}.`);
  return [...missing, ...strange];
}

function serviceFiles(house: House, service: string): string[] {
  const folder = `services/${service}/src/`;
  return house.paths(/\.ts$/).filter((path) => path.startsWith(folder) && !testCode.test(path));
}

/** `inputs` for services/x/src/inputs/http/a.ts, `main.ts` for services/x/src/main.ts. */
function placeOf(path: string): string {
  return path.split('/')[3] ?? '';
}

function targetOf(path: string, { specifier }: Import): string {
  return posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts');
}

function directionProblems(house: House, path: string): string[] {
  const from = placeOf(path);
  return importsOf(house.tree(path))
    .filter((imported) => !imported.typeOnly && imported.specifier.startsWith('.'))
    .map((imported) => ({ imported, to: placeOf(targetOf(path, imported)) }))
    .filter(({ to }) => !(allowed[from] ?? []).includes(to))
    .map(
      ({ imported, to }) => `${path}:${imported.line} ${from} imports ${to}; it may import ${allowedInWords(from)}.`,
    );
}

function allowedInWords(from: string): string {
  const names = allowed[from] ?? [];
  return names.length === 0 ? 'nothing of its service' : names.join(', ');
}

function leavesItsService(house: House, path: string, services: readonly string[]): string[] {
  const [, own = ''] = path.split('/');
  return importsOf(house.tree(path)).flatMap((imported) => {
    const { specifier, line } = imported;
    const named = services.find((other) => other !== own && specifier.startsWith(`@backtalk/${other}`));
    const outside = specifier.startsWith('.') && !targetOf(path, imported).startsWith(`services/${own}/src/`);
    return named === undefined && !outside
      ? []
      : [`${path}:${line} imports ${specifier}; services meet on the wire only.`];
  });
}

export const serviceRules: readonly Rule[] = [
  {
    name: 'every service has the eight names inside',
    broken: { 'services/a/src/things.ts': '' },
    check: (house) =>
      house.services.flatMap((service) => {
        const folder = `services/${service}/src`;
        return namesProblems(topNames(house, folder), folder, eightNames, extraNames);
      }),
  },
  {
    name: 'the worker’s engine and training have the eight names inside',
    broken: { 'services/worker/src/backtalk_worker/engine/things.py': '' },
    check: (house) =>
      ['engine', 'training']
        .map((name) => `services/worker/src/backtalk_worker/${name}`)
        .filter((folder) => topNames(house, folder).length > 0)
        .flatMap((folder) => namesProblems(topNames(house, folder), folder, pythonNames, pythonExtraNames)),
  },
  {
    name: 'imports go main → service → inputs → domain, and service → outputs',
    broken: { 'services/a/src/domain/x.ts': "import { y } from '../outputs/y.js';" },
    check: (house) =>
      house.services.flatMap((service) =>
        serviceFiles(house, service).flatMap((path) => directionProblems(house, path)),
      ),
  },
  {
    name: 'no service imports another',
    broken: {
      'services/a/src/service.ts': "import { y } from '@backtalk/b';",
      'services/b/src/service.ts': "import { y } from '../../a/src/service.js';",
    },
    check: (house) =>
      house.services.flatMap((service) =>
        serviceFiles(house, service).flatMap((path) => leavesItsService(house, path, house.services)),
      ),
  },
];
