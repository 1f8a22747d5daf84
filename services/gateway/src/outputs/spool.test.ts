import { appendFile, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Metrics } from '@backtalk/kit';
import { FakeClock, silentLogger, TemporaryDirectory, until } from '@backtalk/kit/testing';
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
const clock = new FakeClock();
const open = (bytesMax = 1024 * 1024): Promise<Spool> => Spool.open({ directory: path(), bytesMax, clock, events });
const record = (text: string): SpoolRecord => ({ name: 'turnCompleted', traceparent: '', message: Buffer.from(text) });

async function drained(spool: Spool): Promise<string[]> {
  const texts: string[] = [];
  for (let segment = await spool.oldest(); segment !== undefined; segment = await spool.oldest()) {
    for (const { message } of (await spool.read(segment)).records) texts.push(Buffer.from(message).toString());
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

  it('gives the number of a segment that was set aside to no other', async () => {
    await mkdir(path(), { recursive: true });
    await writeFile(join(path(), '000000000007.spool.bad'), 'torn');
    await (await open()).append([record('a')]);
    expect(await readdir(path())).toEqual(['000000000007.spool.bad', '000000000008.spool']);
  });

  it('takes what comes while it is drained, without mixing it in', async () => {
    const spool = await open();
    await spool.append([record('a')]);
    const segment = await spool.oldest();
    await spool.append([record('b')]);
    if (segment === undefined) return expect.fail('a segment was expected');
    expect((await spool.read(segment)).records).toHaveLength(1);
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

  it('remembers that the disk refused a write until a try of its own succeeds, and leaves no empty segment', async () => {
    const spool = await open();
    await rm(path(), { recursive: true });
    await expect(spool.append([record('a')])).rejects.toMatchObject({ code: 'spool_failed' });
    expect([spool.takes(1), spool.hasRoom(1)]).toEqual([false, true]);
    await clock.advance(5_000);
    expect(spool.takes(1)).toBe(false);
    await mkdir(path());
    await until(async () => {
      await clock.advance(1_000);
      return spool.takes(1);
    });
    expect(await readdir(path())).toEqual([]);
    await spool.append([record('b')]);
    expect(await drained(spool)).toEqual(['b']);
    expect(await readdir(path())).toEqual([]);
    await spool.close();
  });

  it('forgets an empty file that an earlier life left', async () => {
    await (await open()).close();
    await writeFile(join(path(), '000000000001.spool'), '');
    const spool = await open();
    expect(await readdir(path())).toEqual([]);
    expect(await spool.oldest()).toBeUndefined();
  });

  it('keeps a few segments that cannot be read, the newest ones', async () => {
    const spool = await open();
    for (let at = 0; at < 10; at += 1) {
      await spool.append([record(String(at))]);
      const segment = await spool.oldest();
      await spool.setAside(segment ?? expect.unreachable(), 1);
    }
    expect(spool.isEmpty).toBe(true);
    const kept = (await readdir(path())).sort();
    expect(kept).toHaveLength(8);
    expect(kept[0]).toBe('000000000003.spool.bad');
    expect(await drained(await open())).toEqual([]);
  });
});
