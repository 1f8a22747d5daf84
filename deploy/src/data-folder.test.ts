import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { cappedBytes, folderBytes } from '@backtalk/kit';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { lastModel, lastPolicies, refuseOtherBase, writeConnection } from './connection.js';
import { openDataFolder, type DataFolder } from './data-folder.js';
import { launch } from './launch.js';
import { portsFrom } from './ports.js';
import { loadSecrets, type Secrets } from './secrets.js';
import { createTerminal } from './terminal.js';

const folder = new TemporaryDirectory('data');
const startOf = (data: DataFolder) => ({
  data,
  ports: portsFrom(30_000),
  secrets: loadSecrets(folder.path),
  host: '127.0.0.1',
  policies: ['backtalk'],
});

const writtenIn = (data: DataFolder) => JSON.parse(readFileSync(data.connection, 'utf8')) as object;

const leavesOf = (secrets: Secrets): string[] =>
  Object.values(secrets).flatMap((value) => (typeof value === 'string' ? [value] : Object.values<string>(value)));

function without(whole: object, [name = '', ...rest]: readonly string[]): object {
  const members = Object.entries<unknown>(whole as Record<string, unknown>);
  return Object.fromEntries(
    members.flatMap(([key, value]) => {
      if (key !== name) return [[key, value]];
      return rest.length === 0 ? [] : [[key, without(value as object, rest)]];
    }),
  );
}

describe('the data folder', () => {
  it('the data folder keeps its secrets from start to start', () => {
    expect(loadSecrets(folder.path)).toEqual(loadSecrets(folder.path));
  });

  it('a data folder of an earlier release gets each secret that it lacks, and keeps the others', () => {
    const file = folder.join('secrets.json');
    const { hashSecret, ...made } = loadSecrets(folder.path);
    const paths = Object.entries(made).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name]] : [[name], ...Object.keys(value).map((member) => [name, member])],
    );
    expect(paths.length).toBeGreaterThan(12);
    for (const path of paths) {
      const whole = loadSecrets(folder.path);
      const older = without(whole, path);
      writeFileSync(file, JSON.stringify({ ...older, serviceToken: 'one token of all services' }));
      const secrets = loadSecrets(folder.path);
      expect(secrets).toMatchObject(older);
      expect(leavesOf(secrets)).toHaveLength(leavesOf(whole).length);
      expect(new Set(leavesOf(secrets)).size).toBe(leavesOf(whole).length);
      expect(secrets, path.join('.')).not.toEqual(whole);
      expect(loadSecrets(folder.path)).toEqual(secrets);
      expect(readFileSync(file, 'utf8')).not.toContain('one token');
    }
    // All at once, as of the first release.
    writeFileSync(file, JSON.stringify({ hashSecret }));
    chmodSync(file, 0o644);
    expect(loadSecrets(folder.path).hashSecret).toBe(hashSecret);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('a file of secrets without the one behind all hashes is damaged, and stays as it is', () => {
    const file = folder.join('secrets.json');
    const damaged = JSON.stringify(without(loadSecrets(folder.path), ['hashSecret']));
    writeFileSync(file, damaged);
    expect(() => loadSecrets(folder.path)).toThrow('hashSecret');
    expect(readFileSync(file, 'utf8')).toBe(damaged);
    rmSync(file);
  });

  it('commands find the machine in a file that only its owner reads, whatever its mode was', () => {
    const data = openDataFolder(folder.path);
    writeFileSync(data.connection, '', { mode: 0o644 });
    writeConnection(startOf(data));
    expect(statSync(data.connection).mode & 0o777).toBe(0o600);
  });

  it('the policies of one start are those of the next that names none', () => {
    const data = openDataFolder(folder.path);
    rmSync(data.connection, { force: true });
    expect(lastPolicies(data)).toEqual(['backtalk']);
    writeConnection({ ...startOf(data), policies: ['ada', 'ben'] });
    expect(lastPolicies(data)).toEqual(['ada', 'ben']);
    // As an earlier release wrote it.
    writeFileSync(data.connection, JSON.stringify({ ...writtenIn(data), policy: 'ada', policies: undefined }));
    expect(lastPolicies(data)).toEqual(['ada']);
  });

  it('the base model of one start is that of the next that names none, and another is refused', () => {
    const data = openDataFolder(folder.path);
    writeConnection(startOf(data));
    expect(lastModel(data)).toBeUndefined();
    const judge = { url: 'http://judge/v1', model: 'judging' };
    writeConnection({ ...startOf(data), judge });
    expect(lastModel(data)).toBeUndefined();
    writeConnection({ ...startOf(data), judge, base: { name: 'own', folder: '/models/"own"' } });
    expect(lastModel(data)).toBe('/models/"own"');
    refuseOtherBase(data, 'own');
    expect(() => {
      refuseOtherBase(data);
    }).toThrow('belongs to the model own');
  });

  it('a data folder whose versions belong to another base model is refused by name', () => {
    const data = openDataFolder(folder.path);
    writeConnection(startOf(data));
    expect(() => {
      refuseOtherBase(data);
    }).not.toThrow();
    writeFileSync(data.connection, JSON.stringify({ ...writtenIn(data), baseModel: 'elder' }));
    expect(() => {
      refuseOtherBase(data);
    }).toThrow(`What ${folder.path} has learned belongs to the model elder`);
  });

  it('weights that changed under the name of their model are refused in one line that says what to do', () => {
    const data = openDataFolder(folder.path);
    const files = { folder: '/models/own', digest: 'a', stamp: 's' };
    const own = { name: 'own', folder: '/models/own' };
    writeConnection({ ...startOf(data), base: own, baseFiles: files });
    refuseOtherBase(data, 'own', { ...files, stamp: 'another' });
    expect(() => refuseOtherBase(data, 'own', { ...files, digest: 'b' })).toThrow(
      `The weights of own in /models/own are not those that ${folder.path} has learned on: put them back, start with --data NEW`,
    );
    // Of a start of before.
    writeConnection({ ...startOf(data), base: own });
    refuseOtherBase(data, 'own', { ...files, digest: 'b' });
    writeConnection(startOf(data));
  });

  it('a start on weights that changed under their name is refused before anything starts', async () => {
    const data = openDataFolder(folder.path);
    const files = { folder: '/models/own', digest: 'a', stamp: 's' };
    writeConnection({ ...startOf(data), baseFiles: files });
    const said = { terminal: createTerminal(new PassThrough()), dataCapBytes: 1 };
    const start = { root: folder.path, data, ports: portsFrom(30_000), host: '127.0.0.1', ...said };
    const { up } = launch({ ...start, baseFiles: { ...files, digest: 'b' } });
    await expect(up()).rejects.toMatchObject({ code: 'base_model_changed' });
  });

  it('the data folder is measured with all that is below it, and its cap is without fetched models', () => {
    const before = folderBytes(folder.path);
    writeFileSync(folder.join('blobs', 'a'), Buffer.alloc(1000));
    expect(folderBytes(folder.path) - before).toBe(1000);
    expect(folderBytes(folder.join('gone'))).toBe(0);
    openDataFolder(folder.path);
    const capped = cappedBytes(folder.path);
    writeFileSync(folder.join('models', 'weights'), Buffer.alloc(1000));
    expect(cappedBytes(folder.path)).toBe(capped);
  });
});
