import { appendFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Metrics } from '@backtalk/kit';
import { silentLogger, TemporaryDirectory } from '@backtalk/kit/testing';
import { createEvents } from '../events.js';
import { encodeRecord, type SpoolRecord } from '../domain/spool-record.js';
import { Spool } from './spool.js';

const directory = new TemporaryDirectory('spool');
const events = createEvents(silentLogger, new Metrics('gateway'));
let number = 0;

afterEach(() => {
  number += 1;
});

const path = (): string => directory.join(`spool-${number}`);
const open = (bytesMax = 1024 * 1024): Promise<Spool> => Spool.open({ directory: path(), bytesMax, events });
const record = (text: string): SpoolRecord => ({ name: 'turnCompleted', traceparent: '', message: Buffer.from(text) });

async function drained(spool: Spool): Promise<string[]> {
  const texts: string[] = [];
  for (let segment = await spool.oldest(); segment !== undefined; segment = await spool.oldest()) {
    for (const { message } of await spool.read(segment)) texts.push(Buffer.from(message).toString());
    await spool.discard(segment);
  }
  return texts;
}

describe('Spool', () => {
  it('gives back what was put in, in order, and is empty afterwards', async () => {
    const spool = await open();
    await Promise.all(['a', 'b', 'c'].map((text) => spool.append([record(text)])));
    await spool.append([record('d'), record('e')]);
    expect(await drained(spool)).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(spool.isEmpty).toBe(true);
    expect(await readdir(path())).toEqual([]);
  });

  it('a spool has on disk what it said it has, when its process dies without a word', async () => {
    const killed = await open();
    await killed.append([record('a')]);
    await killed.append([record('b')]);
    expect(await drained(await open())).toEqual(['a', 'b']);
  });

  it('recovers everything before a torn record, and goes on in a new file', async () => {
    const killed = await open();
    await killed.append([record('a')]);
    const [file = ''] = await readdir(path());
    await appendFile(join(path(), file), encodeRecord(record('torn')).subarray(0, 20));
    const spool = await open();
    await spool.append([record('b')]);
    expect(await drained(spool)).toEqual(['a', 'b']);
  });

  it('takes what comes while it is drained, without mixing it in', async () => {
    const spool = await open();
    await spool.append([record('a')]);
    const segment = await spool.oldest();
    await spool.append([record('b')]);
    if (segment === undefined) return expect.fail('a segment was expected');
    expect(await spool.read(segment)).toHaveLength(1);
    await spool.discard(segment);
    expect(await drained(spool)).toEqual(['b']);
  });

  it('refuses what would go beyond its bound, and takes it once there is room', async () => {
    const spool = await open(200);
    await spool.append([record('x'.repeat(60))]);
    await expect(spool.append([record('y'.repeat(60))])).rejects.toMatchObject({ code: 'spool_full' });
    expect(spool.hasRoom(100)).toBe(false);
    await drained(spool);
    await spool.append([record('y'.repeat(60))]);
  });

  it('counts what an earlier life left toward its bound', async () => {
    await (await open()).append([record('x'.repeat(100))]);
    const spool = await open(150);
    await expect(spool.append([record('y')])).rejects.toMatchObject({ code: 'spool_full' });
  });

  it('never says that something is stored when the disk refused it, and recovers', async () => {
    const spool = await open();
    await writeFile(join(path(), '000000000001.spool'), '');
    await expect(spool.append([record('a')])).rejects.toMatchObject({ code: 'spool_failed' });
    await spool.append([record('b')]);
    expect(await drained(spool)).toEqual(['b']);
  });
});
