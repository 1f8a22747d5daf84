// Generated secrets are kept: Helm renders the release again for a cluster that holds them already.
import { afterAll, expect, it } from 'vitest';
import { z } from 'zod';
import { startApiServer, type ApiServer } from './api-server.js';
import { render, renderOn, type RenderedObject, type Values } from './helm.js';
import { podsOf } from './pods.js';

const secretShape = z.looseObject({ data: z.record(z.string(), z.string()) });

function secretOf(objects: readonly RenderedObject[]): RenderedObject {
  const found = objects.find(({ kind }) => kind === 'Secret');
  if (found === undefined) throw new TypeError('No Secret is rendered.');
  return found;
}

function dataOf(objects: readonly RenderedObject[]): Record<string, string> {
  return secretShape.parse(secretOf(objects)).data;
}

const servers: ApiServer[] = [];

async function renderedOver(held: readonly RenderedObject[], values: Values = {}): Promise<RenderedObject[]> {
  const server = await startApiServer(render(), held);
  servers.push(server);
  return renderOn(server.kubeconfig, values);
}

afterAll(async () => {
  for (const server of servers) await server.stop();
});

it('an upgrade keeps every secret that the cluster holds, and restarts no pod for their sake', async () => {
  const before = render();
  const after = await renderedOver([secretOf(before)]);
  expect(dataOf(after)).toEqual(dataOf(before));
  const sumsOf = (objects: readonly RenderedObject[]) =>
    new Set(podsOf(objects).map(({ annotations }) => annotations['checksum/secrets']));
  expect(sumsOf(after)).toEqual(sumsOf(before));
});

it('a key that a new version of the chart asks for is made, and the others are kept', async () => {
  const { 'judge-engine-key': taken, ...held } = dataOf(render());
  const after = dataOf(await renderedOver([{ ...secretOf(render()), data: held }]));
  const { 'judge-engine-key': made, ...kept } = after;
  expect(kept).toEqual(held);
  expect(made).not.toBe(taken);
  expect(Buffer.from(made ?? '', 'base64').toString()).toMatch(/^[a-z][A-Za-z0-9]{47}$/);
});

it('clients’ keys that somebody has put into the Secret are kept', async () => {
  const keys = Buffer.from('{"keys":[]}').toString('base64');
  const held = { ...secretOf(render()), data: { ...dataOf(render()), 'keys.json': keys } };
  expect(dataOf(await renderedOver([held]))['keys.json']).toBe(keys);
});

const sumsByComponent = (objects: readonly RenderedObject[]) =>
  Object.fromEntries(podsOf(objects).map(({ component, annotations }) => [component, annotations['checksum/secrets']]));

it.each([
  ['clients’ keys restart no pod', 'keys.json', /^$/],
  ['a client’s own key restarts the pod for commands alone', 'client-key', /^commands$/],
  ['the engines’ key restarts every pod', 'engine-key', /./],
])('an edited Secret: %s', async (_, key, which) => {
  const edited = { ...dataOf(render()), [key]: Buffer.from('{"keys":[]}').toString('base64') };
  const before = sumsByComponent(render());
  const after = sumsByComponent(await renderedOver([{ ...secretOf(render()), data: edited }]));
  const restarted = Object.keys(before).filter((component) => before[component] !== after[component]);
  const longRunning = Object.keys(before).filter((component) => before[component] !== undefined);
  expect(longRunning).toContain('commands');
  expect(restarted).toEqual(longRunning.filter((component) => which.test(component)));
});

it('a cluster that holds none is given new ones', async () => {
  const after = dataOf(await renderedOver([]));
  const before = dataOf(render());
  expect(Object.keys(after)).toEqual(Object.keys(before));
  expect(after['hash-secret']).not.toBe(before['hash-secret']);
});
