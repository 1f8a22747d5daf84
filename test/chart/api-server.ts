// As much of a Kubernetes API server as Helm asks when it renders an upgrade: which kinds there are, and which objects. In:
// the objects that a release has, and those that the cluster holds. Out: a configuration file for Helm. It stores nothing.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { namespace, notesOn, release, render, type RenderedObject, type Values } from './helm.js';

export interface ApiServer {
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

export async function startApiServer(
  kinds: readonly RenderedObject[],
  held: readonly RenderedObject[],
): Promise<ApiServer> {
  const answers = new Map<string, unknown>([
    ['/version', { major: '1', minor: '33', gitVersion: 'v1.33.0' }],
    ...discoveryOf(kinds),
    ...held.map((one) => [`${folderOf(one)}/${one.metadata.name}`, owned(one)] as const),
    ...held.map((one) => {
      const items = held.filter((other) => folderOf(other) === folderOf(one)).map(owned);
      return [folderOf(one), { kind: `${one.kind}List`, apiVersion: one.apiVersion, items }] as const;
    }),
  ]);
  const server = createServer(({ url = '' }, response) => {
    const answer = answers.get(url.split('?')[0] ?? '');
    const missing = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 };
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? missing));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const folder = new TemporaryDirectory();
  const kubeconfig = folder.join('config');
  writeFileSync(kubeconfig, JSON.stringify(configurationFor(`http://127.0.0.1:${String(port)}`)));
  return {
    kubeconfig,
    stop: async () => {
      await new Promise((resolve) => server.close(resolve));
      folder.remove();
    },
  };
}

function folderOf({ apiVersion, kind }: RenderedObject): string {
  return `/${apiVersion.includes('/') ? 'apis' : 'api'}/${apiVersion}/namespaces/${namespace}/${pluralOf(kind)}`;
}

/** The words after an installation, on a cluster that holds nothing. */
export async function notes(values: Values = {}, files: readonly string[] = []): Promise<string> {
  const server = await startApiServer([...render(), ...render(values, files)], []);
  try {
    return await notesOn(server.kubeconfig, values, files);
  } finally {
    await server.stop();
  }
}

/** As Helm leaves an object of a release in the cluster; it takes over no other. */
function owned(object: RenderedObject): RenderedObject {
  const owner = { 'meta.helm.sh/release-name': release, 'meta.helm.sh/release-namespace': namespace };
  const { metadata } = object;
  return { ...object, metadata: { ...metadata, annotations: { ...metadata.annotations, ...owner } } };
}

/** One list for each version of each group, as Helm looks for them. */
function discoveryOf(objects: readonly RenderedObject[]): (readonly [string, unknown])[] {
  const versions = [...new Set(objects.map(({ apiVersion }) => apiVersion))];
  const groups = versions.filter((version) => version.includes('/'));
  const lists = versions.map((version) => {
    const kinds = new Set(objects.filter(({ apiVersion }) => apiVersion === version).map(({ kind }) => kind));
    const resources = [...kinds].map((kind) => ({ name: pluralOf(kind), kind, namespaced: true, verbs: ['get'] }));
    const list = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: version, resources };
    return [`/${version.includes('/') ? 'apis' : 'api'}/${version}`, list] as const;
  });
  return [
    ['/api', { kind: 'APIVersions', versions: ['v1'] }],
    ['/apis', { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map((version) => groupOf(version)) }],
    ...lists,
  ];
}

function groupOf(groupVersion: string) {
  const [name = '', version = ''] = groupVersion.split('/');
  return { name, versions: [{ groupVersion, version }], preferredVersion: { groupVersion, version } };
}

function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  return name.endsWith('y') ? `${name.slice(0, -1)}ies` : `${name}s`;
}

function configurationFor(server: string) {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [{ name: 'test', cluster: { server } }],
    users: [{ name: 'test', user: {} }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test', namespace } }],
  };
}
