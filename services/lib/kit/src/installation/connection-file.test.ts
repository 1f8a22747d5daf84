import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { TemporaryDirectory } from '../testing/temporary-directory.js';
import { connectionText, readConnectionFile, type ConnectionFile } from './connection-file.js';

const directory = new TemporaryDirectory('connection-file');
afterAll(() => directory.remove());
const file = directory.join('connection.json');

const least = {
  endpoint: 'http://127.0.0.1:30000/v1',
  engine: 'http://127.0.0.1:30030',
  policy: 'backtalk',
  baseModel: 'own',
  natsUrl: 'nats://127.0.0.1:4222',
  natsUser: 'cli',
  natsPassword: 'a password of the broker',
  blobStore: 'folder:/data/blobs',
  health: { gateway: 'http://127.0.0.1:30001' },
};
const defaults = { engineKey: '', cliToPublisher: '', policies: [] };

describe('the file by which commands find a machine', () => {
  it('what a start writes is what commands and the next start read, without the keys of engines elsewhere', () => {
    const elsewhere = { url: 'http://e', dialect: 'vllm', keyFile: '/k', key: 'sk-1' } as const;
    const judge = { url: 'http://j', model: 'reader', key: 'sk-2', away: '' };
    const told = { judge, engineChoice: elsewhere, device: 'cuda', teacher: '/t', quantization: 'nf4' } as const;
    const written: ConnectionFile = { ...least, ...defaults, ...told, policies: ['ada', 'ben'], model: undefined };
    writeFileSync(file, connectionText(written));
    expect(readFileSync(file, 'utf8')).not.toContain('sk-');
    expect(readConnectionFile(file)).toEqual({
      ...written,
      judge: { url: 'http://j', model: 'reader' },
      engineChoice: { url: 'http://e', dialect: 'vllm', keyFile: '/k' },
    });
  });

  it('a file of an earlier release is read with the usual for what it lacks, and a folder without one says nothing', () => {
    writeFileSync(file, JSON.stringify(least));
    expect(readConnectionFile(file)).toEqual({ ...least, ...defaults });
    expect(readConnectionFile(directory.join('gone.json'))).toBeUndefined();
  });

  it.each([
    ['is empty', '', 'it is no JSON, or cannot be read'],
    ['was cut off', JSON.stringify(least).slice(0, -20), 'it is no JSON, or cannot be read'],
    ['lacks a member', JSON.stringify({ ...least, natsUrl: undefined }), 'natsUrl is missing, or is no such value'],
    ['names no address', JSON.stringify({ ...least, engine: 'nowhere' }), 'engine is missing, or is no such value'],
    ['is a list', '[]', 'all of it is missing, or is no such value'],
  ])('a file that %s is refused in one line that says what to do and repeats nothing of it', (_, text, why) => {
    writeFileSync(file, text);
    const line = `${file} is damaged (${why}): move it away, and start with the flags that the last start had; they stood in it.`;
    expect(() => readConnectionFile(file)).toThrow(line);
    expect(line).not.toContain(least.natsPassword);
  });
});
