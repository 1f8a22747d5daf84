import { writeFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SizeWatch } from './size-watch.js';
import { createTerminal } from './terminal.js';

let folder: TemporaryDirectory;
let watch: SizeWatch;
let shown = '';
let told: boolean[] = [];
let failures = 0;

beforeEach(() => {
  folder = new TemporaryDirectory('size');
  shown = '';
  told = [];
  failures = 0;
  const output = new PassThrough();
  output.on('data', (text: Buffer) => (shown += text.toString()));
  watch = new SizeWatch({
    path: folder.path,
    capBytes: 1_000_000,
    everyMs: 5,
    terminal: createTerminal(output),
    tell: async (full) => {
      if (failures > 0) {
        failures -= 1;
        return Promise.reject(new TypeError('away'));
      }
      told.push(full);
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
  it('is told at the start, and when the cap is reached, and when there is room again', async () => {
    watch.start();
    await until(() => told.length === 1);
    fill(1_100_000);
    await until(() => told.length === 2);
    fill(970_000);
    await until(() => folder.path !== '' && told.length === 2);
    fill(800_000);
    await until(() => told.length === 3);
    expect(told).toEqual([false, true, false]);
    expect(shown).toContain('has reached its cap');
    expect(shown).toContain('has room again');
  });

  it('is told again where telling failed', async () => {
    failures = 2;
    fill(1_100_000);
    watch.start();
    await until(() => told.length === 1);
    expect(told).toEqual([true]);
  });

  it('is said in good time, once', async () => {
    fill(900_000);
    watch.start();
    await until(() => shown.includes('90 %'));
    expect(told).toEqual([false]);
    expect(shown.match(/90 %/g)).toHaveLength(1);
  });
});
