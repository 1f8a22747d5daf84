import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { lockDataFolder } from './folder-lock.js';
import { identityOf } from './process-record.js';

const directory = new TemporaryDirectory('folder-lock');
const starts: Start[] = [];

afterEach(async () => {
  await Promise.all(starts.splice(0).map((start) => start.kill()));
});
afterAll(() => {
  directory.remove();
});

/** Takes locks of the folders that it is told, and waits to be told so before each look at a lock and each change of one. */
const program = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  const say = (word) => fs.writeSync(1, word + '\\n');
  const read = fs.readSync;
  const told = () => {
    const one = Buffer.alloc(1);
    let line = '';
    while (read(0, one) === 1 && one.toString() !== '\\n') line += one.toString();
    return line;
  };
  for (const name of ['readlinkSync', 'renameSync', 'symlinkSync', 'unlinkSync']) {
    const real = fs[name];
    fs[name] = (...given) => {
      say('-');
      told();
      return real(...given);
    };
  }
  syncBuiltinESMExports();
  const { lockDataFolder } = await import(${JSON.stringify(new URL('../dist/folder-lock.js', import.meta.url).href)});
  say('here');
  for (let path = told(); path !== ''; path = told()) {
    try {
      lockDataFolder({ path });
      say('taken');
    } catch (error) {
      say(error.code + ' ' + error.detail?.pid);
    }
  }`;

/** A process of its own that takes locks step by step. */
class Start {
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly lines: AsyncIterator<string>;

  constructor() {
    this.child = spawn(process.execPath, ['--input-type=module', '-e', program]);
    this.lines = linesOf(this.child);
    starts.push(this);
  }

  get identity(): string | undefined {
    return identityOf(this.child.pid ?? 0);
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** `-` while there are more steps. */
  async next(): Promise<string> {
    return String((await this.lines.next()).value);
  }

  tell(line: string): void {
    this.child.stdin.write(`${line}\n`);
  }

  async step(): Promise<string> {
    this.tell('');
    return this.next();
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
  }
}

async function* linesOf({ stdout }: ChildProcessWithoutNullStreams): AsyncGenerator<string> {
  let text = '';
  for await (const chunk of stdout.setEncoding('utf8')) {
    text += String(chunk);
    const lines = text.split('\n');
    text = lines.pop() ?? '';
    yield* lines;
  }
}

async function started(count: number): Promise<readonly Start[]> {
  const made = Array.from({ length: count }, () => new Start());
  for (const start of made) expect(await start.next()).toBe('here');
  return made;
}

let folders = 0;

/** A folder with what killed starts left: each lock's name with the start that it names. */
function folderWith(left: Readonly<Record<string, string>>): string {
  folders += 1;
  const path = directory.join(`folder-${String(folders)}`);
  mkdirSync(path);
  for (const [name, identity] of Object.entries(left)) symlinkSync(identity, join(path, name));
  return path;
}

const dead = '999999999:1';
const deadToo = '999999998:1';

/** The same numbers each time (mulberry32). */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Lets the starts go on one step at a time, in an order of chance; each with what it said in the end. */
async function outcomesOf(racing: readonly Start[], path: string, random: () => number): Promise<string[]> {
  const outcomes = new Map<Start, string>();
  for (const start of racing) {
    start.tell(path);
    await start.next();
  }
  while (outcomes.size < racing.length) {
    const going = racing.filter((start) => !outcomes.has(start));
    const start = going[Math.floor(random() * going.length)];
    const said = await start?.step();
    if (start !== undefined && said !== undefined && said !== '-') outcomes.set(start, said);
  }
  return racing.map((start) => outcomes.get(start) ?? '');
}

describe('the lock of a data folder', () => {
  it.each<[string, Readonly<Record<string, string>>]>([
    ['nothing', {}],
    ['a lock', { lock: dead }],
    ['a lock, and the claim of another that was killed', { lock: dead, [`lock.${dead}`]: deadToo }],
    ['a lock, and the mark of an earlier release', { lock: dead, 'lock.replaced': deadToo }],
  ])(
    'exactly one of three starts has the folder where killed ones left %s, in whatever order their steps come',
    async (_, left) => {
      const racing = await started(3);
      const random = chance(1);
      for (let race = 0; race < 60; race += 1) {
        const path = folderWith(left);
        const outcomes = await outcomesOf(racing, path, random);
        const winner = racing[outcomes.indexOf('taken')];
        const refused = `already_running ${String(winner?.pid)}`;
        expect(outcomes.toSorted(), `race ${String(race)}`).toEqual([refused, refused, 'taken']);
        expect(readlinkSync(join(path, 'lock'))).toBe(winner?.identity);
      }
    },
  );

  it('a start that is killed in the middle keeps the folder from none after it, whichever step was its last', async () => {
    for (let steps = 0, isOver = false; !isOver; steps += 1) {
      const path = folderWith({ lock: dead });
      const [start] = await started(1);
      start?.tell(path);
      let said = await start?.next();
      for (let taken = 0; taken < steps && said === '-'; taken += 1) said = await start?.step();
      isOver = said === 'taken';
      await start?.kill();
      const release = lockDataFolder({ path });
      expect(readdirSync(path)).toEqual(['lock']);
      expect(readlinkSync(join(path, 'lock'))).toBe(identityOf(process.pid));
      release();
      expect(readdirSync(path)).toEqual([]);
    }
  });

  it('a lock names the process that holds it, in a link or in the file of an earlier release, and keeps others out', () => {
    const path = folderWith({});
    const lock = join(path, 'lock');
    const leave = { link: symlinkSync, file: (identity: string, file: string) => writeFileSync(file, identity) };
    for (const write of Object.values(leave)) {
      write(identityOf(process.ppid) ?? '', lock);
      expect(() => lockDataFolder({ path })).toThrow(
        `Backtalk runs on ${path} already (process ${String(process.ppid)})`,
      );
      unlinkSync(lock);
      // Its number may belong to another process by now.
      for (const gone of [dead, `${String(process.ppid)}:1`, '?', 'of/an elder']) {
        write(gone, lock);
        lockDataFolder({ path })();
        expect(lstatSync(lock, { throwIfNoEntry: false })).toBeUndefined();
      }
    }
  });

  it('a start takes its own lock again, and lets go of none but its own', () => {
    const path = folderWith({});
    const lock = join(path, 'lock');
    const release = lockDataFolder({ path });
    lockDataFolder({ path });
    unlinkSync(lock);
    symlinkSync(identityOf(process.ppid) ?? '', lock);
    release();
    expect(readlinkSync(lock)).toBe(identityOf(process.ppid));
  });
});
