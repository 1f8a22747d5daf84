import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { callPairs, cappedBytes, folderBytes } from '@backtalk/kit';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { lastModel, lastPolicies, refuseOtherBase, writeConnection } from './connection.js';
import { lockDataFolder, openDataFolder, type DataFolder } from './data-folder.js';
import { portsFrom } from './ports.js';
import { identityOf } from './process-record.js';
import { loadSecrets } from './secrets.js';

const folder = new TemporaryDirectory('data');

const startOf = (data: DataFolder) => ({
  data,
  ports: portsFrom(30_000),
  secrets: loadSecrets(folder.path),
  host: '127.0.0.1',
  policies: ['backtalk'],
});

describe('the data folder', () => {
  afterEach(() => {
    lockDataFolder(openDataFolder(folder.path))();
  });

  it('a data folder belongs to one start at a time; the lock of a start that was killed does not block the next', () => {
    const data = openDataFolder(folder.path);
    writeFileSync(folder.join('lock'), identityOf(process.ppid) ?? '');
    expect(() => lockDataFolder(data)).toThrow(`Backtalk runs on ${folder.path} already`);
    // Its number may belong to another process by now.
    for (const gone of ['999999999:1', `${String(process.ppid)}:1`, '']) {
      writeFileSync(folder.join('lock'), gone);
      expect(() => lockDataFolder(data)).not.toThrow();
    }
  });

  it('one of many starts at one time gets the folder, also where a killed start left its lock', async () => {
    const data = openDataFolder(folder.path);
    writeFileSync(folder.join('lock'), '999999999:1');
    const module = new URL('../dist/data-folder.js', import.meta.url).href;
    const program = `
      const { lockDataFolder, openDataFolder } = await import(${JSON.stringify(module)});
      const data = openDataFolder(${JSON.stringify(data.path)});
      console.log('here');
      process.stdin.once('data', () => {
        try { lockDataFolder(data); console.log('taken'); } catch (error) { console.log(error.code); }
      });`;
    const starts = Array.from({ length: 6 }, () => spawn(process.execPath, ['--input-type=module', '-e', program]));
    const said = starts.map(({ stdout }) => stdout.setEncoding('utf8')[Symbol.asyncIterator]());
    for (const lines of said) expect((await lines.next()).value).toBe('here\n');
    for (const { stdin } of starts) stdin.write('go');
    const outcomes = await Promise.all(said.map(async (lines) => String((await lines.next()).value).trim()));
    const ended = starts.map((start) => once(start, 'exit'));
    for (const start of starts) start.kill('SIGKILL');
    await Promise.all(ended);
    expect(outcomes.sort()).toEqual([...Array<string>(5).fill('already_running'), 'taken']);
    expect(readdirSync(folder.path).filter((name) => name.startsWith('lock'))).toEqual(['lock']);
    expect(statSync(folder.join('lock')).mode & 0o777).toBe(0o600);
  });

  it('the data folder keeps its secrets from start to start', () => {
    expect(loadSecrets(folder.path)).toEqual(loadSecrets(folder.path));
  });

  it('a data folder of an earlier release gets the secrets that it lacks, and keeps the others', () => {
    const { hashSecret, passwords } = loadSecrets(folder.path);
    const one = { serviceToken: 'one token of all services' };
    writeFileSync(folder.join('secrets.json'), JSON.stringify({ hashSecret, passwords, ...one }));
    chmodSync(folder.join('secrets.json'), 0o644);
    const secrets = loadSecrets(folder.path);
    expect(secrets).toMatchObject({ hashSecret, passwords });
    expect(loadSecrets(folder.path)).toEqual(secrets);
    expect(new Set(Object.values(secrets.callTokens)).size).toBe(callPairs.length);
    expect(readFileSync(folder.join('secrets.json'), 'utf8')).not.toContain(one.serviceToken);
    expect(statSync(folder.join('secrets.json')).mode & 0o777).toBe(0o600);
    writeFileSync(folder.join('secrets.json'), JSON.stringify({ passwords }));
    expect(() => loadSecrets(folder.path)).toThrow('hashSecret');
    rmSync(folder.join('secrets.json'));
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
    writeFileSync(data.connection, '{ "policy": "backtalk" }');
    expect(lastPolicies(data)).toEqual(['backtalk']);
  });

  it('the base model of one start is that of the next that names none, and another is refused', () => {
    const data = openDataFolder(folder.path);
    writeConnection(startOf(data));
    expect(lastModel(data)).toBeUndefined();
    writeConnection({ ...startOf(data), base: { name: 'own', folder: '/models/"own"' } });
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
    writeFileSync(
      data.connection,
      readFileSync(data.connection, 'utf8').replace(/"baseModel": "[^"]+"/, '"baseModel": "elder"'),
    );
    expect(() => {
      refuseOtherBase(data);
    }).toThrow(`What ${folder.path} has learned belongs to the model elder`);
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
