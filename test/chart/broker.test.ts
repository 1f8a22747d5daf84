// The broker of the release: its users may do on it what the kit's own configuration lets them do, and no more.
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brokerUsers, natsConfig } from '@backtalk/kit';
import { freePort, pythonEnvironment, repositoryRoot, TemporaryDirectory, until } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { render, type Values } from './helm.js';

const configMap = z.looseObject({ data: z.record(z.string(), z.string()) });

function renderedConfig(policies: string, values: Values = {}): string {
  const [name = '', ...others] = policies.split(',');
  const found = render(Object.assign({ policy: { name, others } }, values)).find(
    ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.endsWith('-nats'),
  );
  return configMap.parse(found).data['nats.conf'] ?? '';
}

/** In whatever order: a broker reads them as a set. */
const parsed = (json: string) => (JSON.parse(json) as string[]).toSorted();

/** Blocks and lists of subjects, by user, however they are laid out. */
function permissionsIn(config: string): Record<string, unknown> {
  const users = [
    ...config.matchAll(
      /user: "(\w+)", password: \S+, permissions: \{\s*publish: \{ allow: (\[[^\]]*\])(?:, deny: (\[[^\]]*\]))? \}\s*subscribe: \{ allow: (\[[^\]]*\]) \}/g,
    ),
  ];
  return Object.fromEntries(
    users.map(([, user = '', publish = '', denied = '[]', subscribe = '']): [string, unknown] => [
      user,
      { publish: parsed(publish), denied: parsed(denied), subscribe: parsed(subscribe) },
    ]),
  );
}

describe.each(['backtalk', 'support', 'backtalk,support,a_b'])('for policies named %s', (policies) => {
  it('every user has the permissions of the kit’s own configuration', () => {
    const passwords = Object.fromEntries(brokerUsers.map((user) => [user, 'x'])) as Record<
      (typeof brokerUsers)[number],
      string
    >;
    const own = natsConfig({ passwords, storeDirectory: '/data', port: 4222, durableSuffixes: policies.split(',') });
    const rendered = permissionsIn(renderedConfig(policies));
    expect(Object.keys(rendered)).toEqual([...brokerUsers]);
    expect(rendered).toEqual(permissionsIn(own));
  });
});

it('the rest of the broker’s configuration is as in the kit’s own', () => {
  const passwords = Object.fromEntries(brokerUsers.map((user) => [user, 'x'])) as Record<
    (typeof brokerUsers)[number],
    string
  >;
  const options = { passwords, storeDirectory: '/data', host: '0.0.0.0', port: 4222, monitorPort: 8222 };
  const own = natsConfig({ ...options, fileStoreBytesMax: 16 * 1024 ** 3 });
  const settings = (config: string) =>
    (config.split('authorization')[0] ?? '')
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith('#'));
  expect(settings(renderedConfig('backtalk'))).toEqual(settings(own));
});

it('nothing is written in a way that nats-server does not read', () => {
  expect(renderedConfig('backtalk')).not.toContain(String.raw`\u`);
});

it('no password stands in the configuration', () => {
  expect(renderedConfig('backtalk').match(/password: \S+/g)).toEqual(
    brokerUsers.map((user) => `password: $NATS_PASSWORD_${user.toUpperCase()},`),
  );
});

function makeCertificate(folder: TemporaryDirectory): void {
  const words = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=broker', '-days', '9'];
  const made = spawnSync('openssl', [...words, '-keyout', 'tls.key', '-out', 'tls.crt'], { cwd: folder.path });
  expect(made.status).toBe(0);
  copyFileSync(folder.join('tls.crt'), folder.join('ca.crt'));
}

it('nats-server tells when its certificate ends where the runbook looks for it', async () => {
  const asked = /wget -qO- http:\/\/127\.0\.0\.1:8222(\/\w+) \| grep (\w+)/.exec(
    readFileSync(join(repositoryRoot(), 'deploy', 'dashboards', 'RUNBOOK.md'), 'utf8'),
  );
  const [, path = '', field = ''] = asked ?? [];
  expect(field).not.toBe('');
  expect(renderedConfig('backtalk')).toMatch(/^http: .*:8222"$/m);
  const folder = new TemporaryDirectory('broker-expiry');
  makeCertificate(folder);
  const [port, monitor] = [await freePort(), await freePort()];
  const files = `cert_file: "${folder.join('tls.crt')}", key_file: "${folder.join('tls.key')}"`;
  writeFileSync(folder.join('nats.conf'), `port: ${port}\nhttp: "127.0.0.1:${monitor}"\ntls { ${files} }\n`);
  const broker = spawn(join(pythonEnvironment(), 'bin', 'nats-server'), ['--config', folder.join('nats.conf')]);
  try {
    const said = () =>
      fetch(`http://127.0.0.1:${monitor}${path}`)
        .then((answer) => answer.text())
        .catch(() => '');
    const ends = async () => new RegExp(`"${field}": "(.+)"`).exec(await said())?.[1];
    const told = Date.parse(await until(ends, { what: 'The broker tells it', timeoutMs: 20_000 }));
    expect(told - Date.now()).toBeGreaterThan(8.9 * 86_400_000);
    expect(told - Date.now()).toBeLessThan(9.1 * 86_400_000);
  } finally {
    broker.kill('SIGKILL');
    folder.remove();
  }
});

it('nats-server starts with certificates, on addresses of both families', () => {
  const folder = new TemporaryDirectory('broker-tls');
  try {
    const config = renderedConfig('backtalk', { tls: { existingSecret: 'tls' }, ipFamily: 'IPv6' });
    makeCertificate(folder);
    writeFileSync(folder.join('nats.conf'), config.replaceAll('/etc/backtalk/tls', folder.path));
    const program = join(pythonEnvironment(), 'bin', 'nats-server');
    const passwords = brokerUsers.map((user) => [`NATS_PASSWORD_${user.toUpperCase()}`, 'b'] as const);
    const env = Object.fromEntries(passwords);
    const run = spawnSync(program, ['--config', folder.join('nats.conf'), '-t'], { env, encoding: 'utf8' });
    expect(run.stderr + run.stdout).toContain('is valid');
    expect(config).toMatch(/verify: true/);
  } finally {
    folder.remove();
  }
});
