// Packages agree with themselves: what a package depends on is what its build waits for.
import { posix } from 'node:path';
import type { House } from './house.js';
import type { Rule } from './rule.js';

interface Package {
  readonly name?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

interface Project {
  readonly references?: readonly { readonly path: string }[];
}

/** Folder of each workspace, by package name. */
function workspaces(house: House): Map<string, string> {
  const manifests = house.paths(/^(proto|deploy|test|services\/.+)\/package\.json$/);
  return new Map(manifests.map((path) => [manifestOf(house, path).name ?? path, posix.dirname(path)]));
}

function manifestOf(house: House, path: string): Package {
  return JSON.parse(house.text(path)) as Package;
}

function referenceProblems(house: House, folder: string, folders: ReadonlyMap<string, string>): string[] {
  const { dependencies = {} } = manifestOf(house, `${folder}/package.json`);
  const { references = [] } = JSON.parse(house.text(`${folder}/tsconfig.json`)) as Project;
  const wanted = Object.keys(dependencies).flatMap((name) => folders.get(name) ?? []);
  const present = references.map(({ path }) => posix.join(folder, path));
  return [
    ...wanted
      .filter((path) => !present.includes(path))
      .map((path) => `${folder}/tsconfig.json does not refer to ${path}.`),
    ...present
      .filter((path) => !wanted.includes(path))
      .map((path) => `${folder}/package.json does not depend on ${path}.`),
  ];
}

export const workspaceRules: readonly Rule[] = [
  {
    name: 'a package’s tsconfig.json refers to exactly the workspaces that its package.json depends on',
    broken: {
      'proto/package.json': '{ "name": "@backtalk/proto" }',
      'services/a/package.json': '{ "name": "@backtalk/a", "dependencies": { "@backtalk/proto": "0.1.0" } }',
      'services/a/tsconfig.json': '{}',
    },
    check: (house) => {
      const folders = workspaces(house);
      return [...folders.values()]
        .filter((folder) => house.has(`${folder}/tsconfig.json`))
        .flatMap((folder) => referenceProblems(house, folder, folders));
    },
  },
];
