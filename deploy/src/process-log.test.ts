import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { ProcessLog } from './process-log.js';

const folder = new TemporaryDirectory('log');
afterAll(() => {
  folder.remove();
});

describe('the log of a process', () => {
  it('a process’s log loses lines on a full disk, and blocks no process', async () => {
    const output = new PassThrough({ highWaterMark: 1_000 });
    const log = new ProcessLog('/dev/full', [output], 5);
    let said = 0;
    const say = () => (output.write('x'.repeat(10_000), () => (said += 1)), said > 20);
    await until(say, { what: 'Twenty times as much as the pipe holds', everyMs: 1 });
    log.end();
  });

  it('a process’s log is rotated when it is long, while the process lives', async () => {
    const path = folder.join('part.log');
    writeFileSync(path, '');
    const output = new PassThrough();
    const log = new ProcessLog(path, [output], 5);
    output.write('before\n');
    await until(() => readFileSync(path, 'utf8') === 'before\n');
    truncateSync(path, 20_000_001);
    await until(() => readFileSync(path, 'utf8') === '', { what: 'A new log' });
    output.write('after\n');
    await until(() => readFileSync(path, 'utf8') === 'after\n');
    expect(readFileSync(`${path}.1`, 'utf8').slice(0, 7)).toBe('before\n');
    log.end();
  });
});
