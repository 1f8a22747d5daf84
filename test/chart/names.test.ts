// Whatever a release or its namespace is called, and whatever passes the schema as a name, its objects are valid: names of
// Services that DNS takes, labels and references that are texts, and no two releases with one name for an object.
import { describe, expect, it } from 'vitest';
import { refusal, renderAs, type RenderedObject, type Values } from './helm.js';

/** As the strictest API server wants a Service's name (RFC 1035). */
const serviceName = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** What YAML reads as a truth, a number or nothing, and what no Service may be called. */
const releases = ['n', 'true', '123', '1e3', '1llm', 'my.release', 'a'.repeat(53)];

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Every map of texts that Kubernetes wants as such, and every name. */
function untextedIn(value: unknown, at: string): string[] {
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([key, below]) => {
    const isOfTexts = ['labels', 'annotations', 'matchLabels', 'selector', 'nodeSelector'].includes(key);
    const isName = /^(name|namespace|key|secretName|claimName|.*ClassName|serviceAccountName|host)$/.test(key);
    const texts = isOfTexts && isRecord(below) ? Object.entries(below) : [];
    const wrong = [...texts, ...(isName ? [[key, below] as const] : [])].filter(
      ([name, one]) => typeof one !== 'string' && name !== 'matchLabels' && name !== 'matchExpressions',
    );
    return [...wrong.map(([name]) => `${at}.${key}.${name}`), ...untextedIn(below, `${at}.${key}`)];
  });
}

function namesOf(objects: readonly RenderedObject[]): string[] {
  return objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
}

/** Names of the reader's own that a plain reading of YAML would change. */
const values: Values = {
  policy: { name: '123' },
  model: { name: '1e3', path: '/models/1e3', claim: 'n' },
  judge: { backend: 'free' },
  priorityClassName: 'y',
  storage: { class: '1e3' },
  serviceAccount: { name: '123' },
  secrets: { existingSecret: '1e3' },
  gateway: { keys: { existingSecret: 'on' } },
  ingress: { enabled: true, host: '1e3', tlsSecret: 'y', className: 'n' },
  pools: { judge: { shares: '', autoscaling: { kind: 'none' } } },
};

describe.each(releases)('release %s', (name) => {
  const objects = renderAs(name, '123', values);

  it('a release of any name has names and labels that are texts', () => {
    expect(objects.flatMap((object) => untextedIn(object, object.kind))).toEqual([]);
    for (const { metadata } of objects) expect(metadata).toMatchObject({ namespace: '123' });
    const instances = new Set(objects.map(({ metadata }) => metadata.labels['app.kubernetes.io/instance']));
    expect([...instances]).toEqual([name]);
  });

  it('a release of any name has Services that DNS can name', () => {
    const services = objects.filter(({ kind }) => kind === 'Service');
    expect(services.length).toBeGreaterThan(5);
    for (const { metadata } of services) expect(metadata.name).toMatch(serviceName);
    for (const { metadata } of objects) expect(metadata.name.length).toBeLessThanOrEqual(63);
  });
});

it.each([
  [`${'a'.repeat(40)}-eu`, `${'a'.repeat(40)}-us`],
  ['my.release', 'my-release'],
  ['1llm', 'b-1llm'],
])('the releases %s and %s share no name', (one, other) => {
  const names = new Set(namesOf(renderAs(one, 'llm')).filter((name) => !name.startsWith('ServiceAccount default')));
  expect(namesOf(renderAs(other, 'llm')).filter((name) => names.has(name))).toEqual([]);
});

it.each([
  ['nameOverride', 'a b'],
  ['nameOverride', '1a'],
  ['fullnameOverride', 'My_Name'],
  ['fullnameOverride', `a${'b'.repeat(40)}`],
])('refuses %s %s', (value, name) => {
  expect(refusal({ [value]: name })).toMatch(new RegExp(`${value}.*pattern`));
});

it('refuses labels that are the chart’s own', () => {
  const own = { 'app.kubernetes.io/name': 'evil' };
  expect(refusal({ labels: own })).toMatch(/labels\/app\.kubernetes\.io/);
  expect(refusal({ gateway: { pod: { labels: own } } })).toMatch(/gateway\/pod\/labels\/app/);
});
