import { describe, expect, it } from 'vitest';
import { contractOfTypescript } from './contract.js';
import { House } from './house.js';
import { namesIn } from './readme.js';
import { rules } from './rules.js';
import { serviceRules } from './service-rules.js';

describe('each rule', () => {
  it.each(rules.map((rule) => [rule.name, rule] as const))('the rule bites: %s', (_name, rule) => {
    expect(rule.check(new House(rule.broken))).not.toEqual([]);
  });

  it('finds nothing in an empty house', () => {
    expect(rules.flatMap((rule) => rule.check(new House({})))).toEqual([]);
  });

  it('every rule has a name of its own', () => {
    expect(new Set(rules.map((rule) => rule.name)).size).toBe(rules.length);
  });
});

describe('import directions', () => {
  const directions = serviceRules.filter((rule) => rule.name.startsWith('imports go'));

  it.each([
    ['services/a/src/main.ts', './outputs/y.js'],
    ['services/a/src/inputs/x.ts', '../outputs/y.js'],
    ['services/a/src/outputs/x.ts', '../inputs/y.js'],
    ['services/a/src/domain/deep/x.ts', '../../events.js'],
    ['services/a/src/config.ts', './service.js'],
  ])('%s may not import %s', (path, specifier) => {
    const house = new House({ [path]: `import { y } from '${specifier}';` });
    expect(directions.flatMap((rule) => rule.check(house))).toHaveLength(1);
  });

  it('inputs may name the types of outputs', () => {
    const text = "import type { Y } from '../outputs/y.js';\nimport { type Z } from '../outputs/z.js';";
    const house = new House({ 'services/a/src/inputs/x.ts': text });
    expect(directions.flatMap((rule) => rule.check(house))).toEqual([]);
  });
});

describe('contractOfTypescript', () => {
  it('finds variables, metrics and codes, shared ones too', () => {
    const house = new House({
      'services/lib/kit/src/config/base-settings.ts':
        "export const baseSettings = { natsUrl: setting.url('BACKTALK_NATS_URL', {}), level: setting.oneOf('BACKTALK_L', [], {}) };",
      'services/a/src/config.ts':
        "const { natsUrl } = baseSettings;\nexport const s = { natsUrl, x: setting\n  .optional(setting.url('BACKTALK_X', {})) };",
      'services/a/src/errors.ts': "export const E = defineErrors('a', { gone: { code: 'gone', retry: 'never' } });",
      'services/a/src/events.ts': "this.metrics.counter('turns_total', 'Turns.');",
    });
    const contract = contractOfTypescript(house, 'a', /^services\/a\//);
    expect([...contract.variables].sort()).toEqual(['BACKTALK_NATS_URL', 'BACKTALK_X']);
    expect([...contract.metrics]).toEqual(['backtalk_a_turns_total']);
    expect([...contract.codes]).toEqual(['gone']);
  });
});

describe('namesIn', () => {
  it('reads the names of one section’s table only', () => {
    const text = '## Metrics\n\n| Name | Is |\n| --- | --- |\n| `a_total` | of `b` |\n\n## Errors\n\n| `c` | |\n';
    expect(namesIn(text, 'Metrics')).toEqual(['a_total']);
    expect(namesIn(text, 'Errors')).toEqual(['c']);
  });

  it('reads the names of what a section says is shared', () => {
    const text = '## Configuration\n\n| `A` | |\n\nShared with other services: `B`, `C`.\n\nNot `D`.\n';
    expect(namesIn(text, 'Configuration')).toEqual(['A', 'B', 'C']);
  });
});
