import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import takeTemporaryFolder from './temporary-folder.mjs';

/** Of the run of which these tests are a part. */
const ofThisRun = tmpdir();

afterEach(() => {
  setTemporaryFolder(ofThisRun);
});

const setTemporaryFolder = (folder: string) => Object.assign(Reflect.get(process, 'env') as object, { TMPDIR: folder });

it('temporary files of a test, and of what it starts, lie in the folder of its run', () => {
  expect(basename(ofThisRun)).toMatch(/^backtalk-run-/);
  const folder = new TemporaryDirectory('kept');
  expect(dirname(folder.path)).toBe(ofThisRun);
  folder.remove();
  const asked = execFileSync('python3', ['-c', 'import tempfile; print(tempfile.gettempdir())'], { encoding: 'utf8' });
  expect(asked.trim()).toBe(ofThisRun);
});

it('a run takes away its folder with all that was left there, and a run that is part of it leaves it alone', async () => {
  setTemporaryFolder(dirname(ofThisRun));
  const remove = takeTemporaryFolder();
  const own = tmpdir();
  expect(own).not.toBe(dirname(ofThisRun));
  expect(takeTemporaryFolder()).toBeUndefined();
  const left = await mkdtemp(join(own, 'left-'));
  remove?.();
  expect([existsSync(left), existsSync(own), tmpdir()]).toEqual([false, false, dirname(ofThisRun)]);
});

it('a run takes away what a run left that was killed, and nothing of one that still runs', async () => {
  setTemporaryFolder(await mkdtemp(join(ofThisRun, 'outside-')));
  const [killed, running] = [
    join(tmpdir(), 'backtalk-run-999999999-a'),
    join(tmpdir(), `backtalk-run-${process.pid}-a`),
  ];
  for (const folder of [killed, running]) mkdirSync(join(folder, 'left'), { recursive: true });
  takeTemporaryFolder()?.();
  expect([existsSync(killed), existsSync(running)]).toEqual([false, true]);
});
