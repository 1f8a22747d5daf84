import { describe, expect, it } from 'vitest';
import { markOf, tableOf, withTable, type Latency, type Row } from './report.js';

const latency = (p99: number): Latency => ({ p50: 5, p99, longest: p99, answers: 200 });

function row(changes: Partial<Row>): Row {
  return {
    name: 'flood',
    about: 'many requests',
    before: 'others wait',
    now: '3 × 429',
    unmeasured: undefined,
    held: true,
    calm: latency(10),
    attacked: latency(30),
    control: latency(20),
    cores: { attacker: 0.5, gateway: 0.5, parts: 1, all: 1.5, of: 2 },
    failed: [],
    ...changes,
  };
}

describe('the table of attacks', () => {
  it('a row passes by what the attack adds, or where the same load elsewhere adds as much', () => {
    expect(markOf(row({}))).toBe('✓');
    expect(markOf(row({ attacked: latency(61), control: latency(12) }))).toBe('≈');
    expect(markOf(row({ attacked: latency(63), control: latency(12) }))).toBe('✗');
    expect(markOf(row({ unmeasured: 'it has no key', attacked: latency(900), failed: ['401'] }))).toBe('✓');
  });

  it('a row fails where the attack reached its aim, or the other client was refused', () => {
    expect(markOf(row({ held: false }))).toBe('✗');
    expect(markOf(row({ failed: ['no_engine'] }))).toBe('✗');
  });

  it('says how often the other client was refused, and with what', () => {
    expect(tableOf([row({ failed: ['429', 'no_engine', '429'] })])).toContain('failed: 2 × 429, 1 × no_engine');
  });

  it('the table has columns of one width, as the formatter leaves them', () => {
    const lines = tableOf([row({}), row({ name: 'a longer name', attacked: latency(900) })]).split('\n');
    expect(new Set(lines.map((line) => line.length)).size).toBe(1);
  });

  it('stands between the two marks of a document, and takes the place of the one before', () => {
    const document = [
      '# Title',
      '<!-- attacks: npm run test:hostile -- --document -->',
      'old',
      '<!-- end of attacks -->',
      'end',
    ].join('\n');
    const once = withTable(document, 'new');
    expect(once).not.toContain('old');
    expect(withTable(once, 'new')).toBe(once);
    expect(once).toMatch(/^# Title[\s\S]*\nnew\n[\s\S]*\nend$/);
    expect(() => withTable('# Title', 'new')).toThrow('SECURITY.md has no');
  });
});
