import { writeFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SizeWatch } from './size-watch.js';
import { createTerminal } from './terminal.js';

let folder: TemporaryDirectory;
let watch: SizeWatch;
let shown = '';
let reported: boolean[] = [];
let failures = 0;

beforeEach(() => {
  folder = new TemporaryDirectory('size');
  shown = '';
  reported = [];
  failures = 0;
  const output = new PassThrough();
  output.on('data', (text: Buffer) => (shown += text.toString()));
  watch = new SizeWatch({
    path: folder.path,
    capBytes: 1_000_000,
    everyMs: 5,
    terminal: createTerminal(output),
    report: async (full) => {
      if (failures > 0) {
        failures -= 1;
        return Promise.reject(new TypeError('away'));
      }
      reported.push(full);
      return Promise.resolve();
    },
  });
});

afterEach(async () => {
  await watch.stop();
  folder.remove();
});

function fill(bytes: number): void {
  writeFileSync(folder.join('turns'), Buffer.alloc(bytes));
}

describe('the size of the data folder', () => {
  it('the folder’s size is reported at the start, when the cap is reached, and when there is room again', async () => {
    watch.start();
    await until(() => reported.length === 1);
    fill(1_100_000);
    await until(() => reported.length === 2);
    fill(970_000);
    await until(() => folder.path !== '' && reported.length === 2);
    fill(800_000);
    await until(() => reported.length === 3);
    expect(reported).toEqual([false, true, false]);
    expect(shown).toContain('has reached its cap');
    expect(shown).toContain('has room again');
  });

  it('the folder’s size is reported again where reporting failed', async () => {
    failures = 2;
    fill(1_100_000);
    watch.start();
    await until(() => reported.length === 1);
    expect(reported).toEqual([true]);
  });

  it('warns in good time, once, that the folder is nearly full', async () => {
    fill(900_000);
    watch.start();
    await until(() => shown.includes('90 %'));
    expect(reported).toEqual([false]);
    expect(shown.match(/90 %/g)).toHaveLength(1);
  });
});
