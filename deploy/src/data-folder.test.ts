import { writeFileSync } from 'node:fs';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { folderBytes, lockDataFolder, openDataFolder } from './data-folder.js';
import { identityOf } from './process-record.js';
import { loadSecrets } from './secrets.js';

const folder = new TemporaryDirectory('data');

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

  it('the data folder keeps its secrets from start to start', () => {
    expect(loadSecrets(folder.path)).toEqual(loadSecrets(folder.path));
  });

  it('the data folder is measured with all that is below it', () => {
    const before = folderBytes(folder.path);
    writeFileSync(folder.join('blobs', 'a'), Buffer.alloc(1000));
    expect(folderBytes(folder.path) - before).toBe(1000);
    expect(folderBytes(folder.join('gone'))).toBe(0);
  });
});
