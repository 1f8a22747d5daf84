import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import type { Connection } from './connection.js';
import { withKeyStore } from './key-store.js';

const grant = { tenant: 'default', user: 'ann', train: true, acceptsUserField: false, limits: {} };

it.each([
  ['is no JSON', '{"keys": [{"sha256": "ab12'],
  ['holds other things than keys', '{"keys": "ab12"}'],
])('a file of keys that %s is named in one line, which repeats nothing of it, and stays as it is', async (_, text) => {
  const folder = new TemporaryDirectory('keys');
  writeFileSync(folder.join('keys.json'), text);
  const connection = { data: folder.path } as Connection;
  const line = `${folder.join('keys.json')} cannot be read as keys: mend it, or move it away and make new ones (npx backtalk keys add).`;
  const refusal = { code: 'keys_damaged', message: line };
  await expect(withKeyStore(connection, (store) => store.list())).rejects.toMatchObject(refusal);
  await expect(withKeyStore(connection, (store) => store.put('cd34', grant))).rejects.toMatchObject(refusal);
  expect(readFileSync(folder.join('keys.json'), 'utf8')).toBe(text);
  folder.remove();
});

it('a key that is added while another command changes the file waits for it, and neither is lost', async () => {
  const folder = new TemporaryDirectory('keys');
  const [file, beside] = [folder.join('keys.json'), folder.join('keys.json.new')];
  const connection = { data: folder.path } as Connection;
  writeFileSync(beside, '');
  const added = withKeyStore(connection, (store) => store.put('cd34', grant));
  writeFileSync(file, JSON.stringify({ keys: [{ sha256: 'ab12', ...grant }] }));
  rmSync(beside);
  await added;
  const hashes = (await withKeyStore(connection, (store) => store.list())).map(({ hash }) => hash);
  expect(hashes).toEqual(['ab12', 'cd34']);
  expect(existsSync(beside)).toBe(false);
  folder.remove();
});

it('a change of keys that was cut off is named, with what to remove', async () => {
  const folder = new TemporaryDirectory('keys');
  writeFileSync(folder.join('keys.json.new'), '');
  const adding = withKeyStore({ data: folder.path } as Connection, (store) => store.put('cd34', grant));
  await expect(adding).rejects.toMatchObject({ code: 'keys_busy' });
  await expect(adding).rejects.toThrow(`remove ${folder.join('keys.json.new')}`);
  folder.remove();
});
