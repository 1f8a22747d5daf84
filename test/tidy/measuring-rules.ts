// Who talks, who judges and who scores must not share a module: a curve on which they agree by construction shows nothing.
import { posix } from 'node:path';
import type { House } from './house.js';
import { typescript, type Rule } from './rule.js';
import { importsOf, literalsOf } from './syntax.js';

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

const simulated = /(^|\/)simulate\/(?:users?|personas)\/.*\.(?:ts|json)$/;
/** What decides about a person's words, or was fitted to some. */
const decides: readonly RegExp[] = [
  /^services\/(?:judge|trainer|gateway|publisher)\/src\/.*\.ts$/,
  /^services\/lib\/kit\/src\/(?:conversation|lessons)\/.*\.ts$/,
  /^(?:test|services)\/judge\/labelled\/.*\.jsonl$/,
  /^test\/relations\/.*\.jsonl$/,
  /^services\/worker\/src\/backtalk_worker\/laptop_model\/.*\.(?:py|json|jsonl|txt)$/,
];
/** Shorter sayings, such as "thank you", belong to everybody. */
const sentenceWordsMin = 4;

const plainOf = (text: string) => (text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? []).join(' ');

/** What a labelled message or turn's next state says; the questions before it are anybody's. */
const nextState = /"(?:next|text)": ?(?:\{[^{}]*?"content": ?)?("(?:[^"\\]|\\.)*")/g;
const saidIn = (path: string, text: string) =>
  path.includes('judge/labelled/') ? [...text.matchAll(nextState)].map(([, said = '']) => said).join('\n') : text;

const quoted = (json: string) => [...json.matchAll(/"([^"\n]*)"/g)].map(([, text = '']) => text);

/** Every sentence that stands in a literal of the user's files. */
function simulatedSentences(house: House): string[] {
  const literals = house
    .paths(simulated)
    .filter((path) => !path.endsWith('.test.ts'))
    .flatMap((path) => (path.endsWith('.json') ? quoted(house.text(path)) : literalsOf(house.tree(path))));
  const sentences = literals.flatMap((text) => text.split(/(?<=[.!?])\s+/)).map((text) => plainOf(text));
  return [...new Set(sentences)].filter((text) => text.split(' ').length >= sentenceWordsMin);
}

function repeatedSentences(house: House): string[] {
  const sentences = simulatedSentences(house);
  return decides
    .flatMap((pattern) => house.paths(pattern))
    .flatMap((path) => {
      const text = ` ${plainOf(saidIn(path, house.text(path)))} `;
      return sentences
        .filter((sentence) => text.includes(` ${sentence} `))
        .map((sentence) => `${path} holds “${sentence}”, which the simulated user says; write one of your own.`);
    });
}

export const measuringRules: readonly Rule[] = [
  {
    name: 'no sentence of a simulated user stands in what decides about words, or in what the laptop model was taught with',
    broken: {
      'test/simulate/user/a.ts': "export const said = ['Ugh! Rather in three rhymes, please.'];",
      'test/judge/labelled/a.jsonl': '{"next": {"role": "user", "content": "Ugh! Rather in three rhymes, please."}}',
      'services/trainer/src/domain/a.test.ts': 'it(\'hears "rather in three rhymes, please"\', () => {});',
      'services/worker/src/backtalk_worker/laptop_model/wordings.json': '["Rather in three rhymes, please."]',
    },
    check: repeatedSentences,
  },
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
