// Documents are true: every variable, metric and error code in the code stands in the service's README, and the other
// way round. What the kit adds to a service stands in the kit's README, and may be repeated in the service's.
import { contractOfPython, contractOfTypescript, type Contract } from './contract.js';
import type { House } from './house.js';
import { namesIn, headings, headingsOf, sectionOf, type Heading } from './readme.js';
import type { Rule } from './rule.js';

interface Documented {
  readonly readme: string;
  readonly contract: Contract;
  readonly optional: Contract;
}

const kitReadme = 'services/lib/kit/README.md';
const none: Contract = { variables: new Set(), metrics: new Set(), codes: new Set() };

function documented(house: House): Documented[] {
  return [...house.services.map((service) => ofService(house, service)), ...ofKit(house), ...ofWorker(house)];
}

function ofService(house: House, service: string): Documented {
  const kit = contractOfTypescript(house, service, /^services\/lib\/(kit|dialects)\/src\//);
  return {
    readme: `services/${service}/README.md`,
    contract: contractOfTypescript(house, service, new RegExp(`^services/${service}/src/`)),
    optional: { variables: new Set(), metrics: kit.metrics, codes: kit.codes },
  };
}

function ofKit(house: House): Documented[] {
  if (house.paths(/^services\/lib\/kit\/src\//).length === 0) return [];
  const contract = contractOfTypescript(house, 'SERVICE', /^services\/lib\/kit\/src\//);
  return [{ readme: kitReadme, contract, optional: none }];
}

function ofWorker(house: House): Documented[] {
  const code = /^services\/worker\/src\//;
  if (house.paths(code).length === 0) return [];
  // Error codes of Python have no table in the code that could be read here: those in the README are believed.
  const contract = contractOfPython(house, code);
  return [{ readme: 'services/worker/README.md', contract, optional: none }];
}

const sections: readonly { heading: Heading; part: keyof Contract; what: string }[] = [
  { heading: 'Configuration', part: 'variables', what: 'variable' },
  { heading: 'Metrics', part: 'metrics', what: 'metric' },
  { heading: 'Errors', part: 'codes', what: 'error code' },
];

function differences(house: House, { readme, contract, optional }: Documented): string[] {
  const text = house.text(readme);
  return sections.flatMap(({ heading, part, what }) => {
    const inReadme = new Set(namesIn(text, heading));
    const missing = [...contract[part]].filter((name) => !inReadme.has(name));
    const unknown = [...inReadme].filter((name) => !contract[part].has(name) && !optional[part].has(name));
    const believed = readme.startsWith('services/worker/') && part === 'codes';
    return [
      ...missing.map((name) => `${readme}, "${heading}", lacks the ${what} ${name}, which is in the code.`),
      ...(believed
        ? []
        : unknown.map((name) => `${readme}, "${heading}", has the ${what} ${name}, which is not in the code.`)),
    ];
  });
}

function headingProblems(house: House, readme: string): string[] {
  if (!house.has(readme)) return [`${readme} is missing.`];
  const text = house.text(readme);
  const present = headingsOf(text);
  if (present.join('|') !== headings.join('|'))
    return [`${readme} has the headings ${present.join(', ')}; it needs ${headings.join(', ')}.`];
  return headings
    .filter((heading) => sectionOf(text, heading).trim() === '')
    .map((heading) => `${readme} says nothing under "${heading}".`);
}

export const documentRules: readonly Rule[] = [
  {
    name: 'every service’s README has the same six headings, and says something under each',
    broken: { 'services/a/src/main.ts': '' },
    check: (house) => documented(house).flatMap(({ readme }) => headingProblems(house, readme)),
  },
  {
    name: 'every variable, metric and error code stands in the README, and none stands there that is not in the code',
    broken: {
      'services/a/src/config.ts': "setting.url('BACKTALK_A', {});",
      'services/a/README.md': '## Metrics\n| `backtalk_a_gone_total` | |\n',
    },
    check: (house) => documented(house).flatMap((part) => differences(house, part)),
  },
];
