// Who talks, who judges and who scores must not share a module: a curve on which they agree by construction shows nothing.
import { posix } from 'node:path';
import type { House } from './house.js';
import { typescript, type Rule } from './rule.js';
import { importsOf } from './syntax.js';

const parties: Readonly<Record<string, RegExp>> = {
  user: /^test\/simulate\/user\//,
  scorer: /^test\/simulate\/scorer\//,
  judge: /^services\/judge\/src\//,
};

/** Every module of the house that the party's files reach, themselves included. */
function reached(house: House, party: RegExp): ReadonlySet<string> {
  const known = new Set(house.paths(typescript).filter((path) => !path.endsWith('.test.ts')));
  const found = new Set([...known].filter((path) => party.test(path)));
  for (const path of found) {
    for (const { specifier } of importsOf(house.tree(path))) {
      const target = posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts');
      if (specifier.startsWith('.') && known.has(target)) found.add(target);
    }
  }
  return found;
}

function sharedModules(house: House): string[] {
  const all = Object.entries(parties).map(([name, party]) => ({ name, modules: reached(house, party) }));
  return all.flatMap((one, index) =>
    all
      .slice(index + 1)
      .flatMap((other) =>
        [...one.modules]
          .filter((path) => other.modules.has(path))
          .map((path) => `${path} serves both ${one.name} and ${other.name}; give each its own.`),
      ),
  );
}

export const measuringRules: readonly Rule[] = [
  {
    name: 'no module serves two of simulated user, judge and scorer',
    broken: {
      'test/simulate/user/a.ts': "import { taste } from '../taste.js';",
      'test/simulate/scorer/b.ts': "import { taste } from '../taste.js';",
      'test/simulate/taste.ts': 'export const taste = 1;',
    },
    check: sharedModules,
  },
];
