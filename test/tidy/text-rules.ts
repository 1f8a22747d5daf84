// What stands in no file, and what no file is called.
import type { House } from './house.js';
import type { Rule } from './rule.js';

const written = /\.(ts|mjs|js|py|proto|md|json|ya?ml|toml|sh|tpl|html|css|txt)$|(^|\/)(\.ci\/run|Dockerfile[^/]*)$/;

/** Recorded from real engines, and what npm writes: not our words. */
const recorded = /^test\/contracts\/|^package-lock\.json$|\/labelled\//;

/** Put together from halves, so that this file does not break its own rules. */
const laterWords = ['TO' + 'DO', 'FIX' + 'ME'];
const machineFolders = ['wo' + 'rk', 'ro' + 'ot', 'fa' + 'rm'];
const later = new RegExp(`\\b(${laterWords.join('|')})\\b`);
const machinePath = new RegExp(`(?<![\\w./-])/(${machineFolders.join('|')})/[\\w.]`);

const vagueName = /^(utils?|helpers?|common|misc|stuff)$/;

function linesThat(house: House, bad: RegExp, advice: string): string[] {
  return house
    .paths(written)
    .filter((path) => !recorded.test(path))
    .flatMap((path) =>
      house.lines(path).flatMap((line, at) => (bad.test(line) ? [`${path}:${at + 1} ${advice}`] : [])),
    );
}

function hasVagueName(path: string): boolean {
  return path.split('/').some((part) => vagueName.test(part.split('.')[0] ?? ''));
}

export const textRules: readonly Rule[] = [
  {
    name: 'nothing is left for later in a comment',
    broken: { 'services/a/src/domain/x.ts': `// ${laterWords.join()}: think` },
    check: (house) => linesThat(house, later, 'leaves something for later; do it, or write an issue.'),
  },
  {
    name: 'no path of one machine stands in the tree',
    broken: { 'README.md': `see /${machineFolders.join('/')}/notes` },
    check: (house) => linesThat(house, machinePath, 'names a path of one machine.'),
  },
  {
    name: 'no file or folder has a name that says nothing',
    broken: { 'services/a/src/domain/utils.ts': '' },
    check: (house) =>
      house
        .paths(/\.(ts|mjs|js|py)$/)
        .filter(hasVagueName)
        .map((path) => `${path}: a file answers one question, and its name is the question.`),
  },
];
