import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { writeDocument } from './document.js';
import { ceilingOf, keptOf } from './findings.js';
import { readPlan } from './options.js';
import { fileNameOf, ResultStore, type Row, type UnitResult } from './result.js';

const row = (of: string, block: string, step: number, headline: number, name = `backtalk-v${String(step)}`): Row => ({
  of,
  block,
  step,
  name,
  scores: { obeys: headline, hit: 1, headline, empty: 0, looping: 0, echo: 0 },
});
const result = (part: string, name: string, rows: Row[]): UnitResult => ({
  part,
  name,
  seed: 1,
  rows,
  steps: [],
  lessons: [],
  talk: [],
  answers: [],
  minutes: 1,
  load: [0, 0],
  processor: '2 × a processor',
  day: '2026-11-22',
  stopped: false,
});
const turns = result('b', 'one+two', [
  row('one', '', 0, 0.5, 'base shown the wish'),
  row('one', 'one', 3, 0.5),
  row('one', 'two', 6, 0.6),
  row('two', 'two', 6, 0.4),
  row('one', 'all together', 9, 0.45),
  row('two', 'all together', 9, 0.4),
]);

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'backtalk-document-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

function written(results: readonly UnitResult[], words?: string): string {
  const path = join(folder, 'learning.md');
  if (words !== undefined) writeFileSync(path, words);
  writeDocument(readPlan(['--document', path]), results, 'A model');
  return readFileSync(path, 'utf8');
}

describe('what is kept of a wish', () => {
  it('gives the last headline of a wish as a share of its best, from its own block on', () => {
    expect(keptOf(turns, 'one')).toMatchObject({ best: 0.6, last: 0.45, share: 0.75 });
    expect(keptOf(turns, 'two')).toMatchObject({ share: 1 });
  });

  it('gives no share where nothing was ever reached', () => {
    expect(keptOf(result('b', 'one', [row('one', 'one', 3, 0)]), 'one').share).toBeUndefined();
  });
});

describe('the document of the learning experiment', () => {
  it('says which wish was lost and which was kept', () => {
    const text = written([turns]);
    expect(text).toMatch(/\| one \| 0\.60 \| 0\.45 \| 0\.75 \| LOST \|/);
    expect(text).toMatch(/\| two \| 0\.40 \| 0\.40 \| 1\.00 \| kept \|/);
  });

  it('names the parts that were not run', () => {
    expect(written([turns])).toContain('Parts (a), (c), (d), (e), (f), (g), (h), (i), (j).');
  });

  it('keeps the words around its figures', () => {
    const text = written([turns], 'before\n<!-- figures -->\nold\n<!-- end of figures -->\nafter\n');
    expect(text).toMatch(/^before\n/);
    expect(text).toMatch(/\nafter\n$/);
    expect(text).not.toContain('old');
  });

  it('draws each wish with the base shown the wish as a dashed line', () => {
    written([turns]);
    const picture = readFileSync(join(folder, 'learning', 'b-one_two-1.svg'), 'utf8');
    expect(picture.match(/<polyline/g)).toHaveLength(2);
    expect(picture.match(/stroke-dasharray/g)).toHaveLength(1);
  });

  it('two runs of one part have a picture each', () => {
    const other = { ...turns, name: 'one+three', stopped: true };
    const text = written([turns, other]);
    const pictures = [...text.matchAll(/\]\(learning\/(b-[^)]+)\)/g)].map(([, file = '']) => file);
    expect(pictures).toEqual(['b-one_two-1.svg', 'b-one_three-1.svg']);
    for (const file of pictures) expect(existsSync(join(folder, 'learning', file))).toBe(true);
  });

  it('a wish was learned where it came to half of what the base shown it comes to, here and in the targets', () => {
    const told = (of: string) => row(of, '', 0, 0.5, 'base shown the wish');
    const late = result('b', 'one+two+three', [
      told('one'),
      told('two'),
      told('three'),
      row('one', 'all together', 9, 0.05),
      row('two', 'all together', 9, 0.25),
      row('three', 'three', 6, 0.1),
      row('three', 'all together', 9, 0.1),
    ]);
    const text = written([late]);
    expect(text).toMatch(/\| one \| 0\.05 \| 0\.05 \| – \| never learned \|/);
    expect(text).toMatch(/\| two \| 0\.25 \| 0\.25 \| – \| learned at the end \|/);
    expect(text).toMatch(/\| three \| 0\.10 \| 0\.10 \| 1\.00 \| never learned \|/);
    expect(text).toContain(
      'one nothing to keep (missed) · two nothing to keep (missed) · three nothing to keep (missed)',
    );
  });

  it('shows what the base makes of the lessons in force beside what it makes of the wish', () => {
    const alone = result('a', 'one', [row('one', '', 0, 0.5, 'base shown the wish'), row('one', 'one', 3, 0.2)]);
    alone.rows.push(row('one', '', 3, 0.35, 'base shown its lessons'));
    expect(written([alone])).toContain('| 0.35 | v3 0.20 | 0.40 |');
  });

  it('tells the two halves of part (c) apart, and names the half that was not run', () => {
    const shared = result('c', 'one+two', [row('one', 'one adapter', 3, 0.1)]);
    const own = result('c', 'one+two, one each', [
      row('one', 'one each', 3, 0.5),
      row('two', 'one each', 3, 0.4, 'backtalk-second-v3'),
    ]);
    const both = written([shared, own]);
    expect(both).toContain('on one adapter\n');
    expect(both).toMatch(/on one adapter each\n[^#]*\| one each \| v3 \| 0\.50 \| 0\.40 \|/);
    expect(both).not.toContain('(c) on one');
    expect(written([shared])).toContain('(c) on one each.');
    expect(readFileSync(join(folder, 'learning', 'c-one_two_one_each-1.svg'), 'utf8').match(/<polyline/g)).toHaveLength(
      2,
    );
  });

  it('says of one correction what each version came to, and what being reminded is worth and costs', () => {
    const at = (version: string, headline: number, tokens: number, shown: number) => ({
      ...row('one', '', 2, headline, version),
      prompt: { tokens, shown },
    });
    const said = result('i', 'one', [
      at('backtalk-v1', 0.02, 30, 0),
      at('backtalk-v1, reminded', 0.5, 42.4, 1),
      { ...row('one', 'one', 4, 0.4), seconds: 125 },
    ]);
    const text = written([said]);
    expect(text).toMatch(/\| one \| 0 \| – \| – \| v4 0\.40 \(125 s\) \|/);
    expect(text).toMatch(/\| one \| backtalk-v1 \| 0\.02 \(0\.02\) \| 0\.50 \(0\.50\) \| 1\.00 \| 30\.0 \| 42\.4 \|/);
  });

  it('says of attempts how many came through, and what the last version says without any', () => {
    const tried = {
      ...result('j', 'one, outcome alone', [
        row('one', 'one', 3, 0.2),
        { ...row('one', 'one', 6, 0.5), kl: 4.25, klAnswers: 16 },
      ]),
    };
    const talk = [{ policy: 'backtalk', sessions: 48, corrected: 30, praised: 18 }];
    expect(written([{ ...tried, talk }])).toMatch(
      /\| one \| outcome alone \| 18 of 48 \| – \| v3 0\.20 · v6 0\.50 \| 0\.50 \| 1\.00 \| 4\.3 \(16\) \|/,
    );
  });

  it('a KL of before is marked as none, and one that is one has its answers beside it', () => {
    const reached = (name: string, more: Partial<Row>) =>
      result('j', name, [{ ...row('one', 'one', 6, 0.5), kl: 4.25, ...more }]);
    const mark = '† Measured before';
    expect(written([reached('one, outcome alone', { klAnswers: 12 })])).not.toContain(mark);
    const both = written([reached('one, outcome alone', { klAnswers: 12 }), reached('one, outcome and votes', {})]);
    expect(both).toMatch(/4\.3 \(12\) \|\n.*4\.3 † \|\n\nKL to the base: nats an answer/);
    expect(both).toContain(mark);
  });

  it('compares a run with the base rows of its own folder, where it has some', () => {
    const baseIn = (run: string, headline: number) => ({
      ...result('base', 'one', [row('one', '', 0, headline, 'base shown the wish')]),
      run,
    });
    const alone = { ...result('a', 'one', [row('one', 'one', 3, 0.5)]), run: 'later' };
    const results = [baseIn('earlier', 0.25), baseIn('later', 0.5)];
    expect(ceilingOf(results, 'one', alone)).toBe(0.5);
    expect(ceilingOf(results, 'one', { ...alone, run: 'another' })).toBe(0.25);
  });

  it('the document has of each wish alone the longest run, and compares a control with the run beside it', () => {
    const told = row('one', '', 0, 0.5, 'base shown the wish');
    const aloneIn = (run: string, step: number, headline: number) => ({
      ...result('a', 'one', [row('one', '', 0, 0, 'base'), told, row('one', 'one', step, headline)]),
      run,
    });
    const control = { ...result('e', 'one, no teacher', [row('one', 'one', 3, 0.1)]), run: 'short' };
    const text = written([aloneIn('long', 9, 0.5), aloneIn('short', 3, 0.25), control]);
    expect(text).toContain('| v9 0.50 |');
    expect(text).not.toContain('| v3 0.25 |');
    expect(text).toMatch(/\| one, no teacher \| v3 \| 0\.10 \| 0\.10 \| 0\.10 \| 0\.25 \| 0\.40 \|/);
  });

  it('compares a control with the gain of the right teacher', () => {
    const alone = result('a', 'one', [row('one', '', 0, 0, 'base'), row('one', 'one', 3, 0.5)]);
    alone.rows.push(row('one', '', 0, 0.5, 'base shown the wish'));
    const control = result('e', 'one, no teacher', [row('one', 'one', 3, 0.1)]);
    expect(written([alone, control])).toMatch(
      /\| one, no teacher \| v3 \| 0\.10 \| 0\.10 \| 0\.10 \| 0\.50 \| 0\.20 \|/,
    );
  });
});

describe('results of the learning experiment', () => {
  it('finds kept results again, and none that was cut', () => {
    const store = new ResultStore(join(folder, 'kept'));
    expect(store.find(turns)).toBeUndefined();
    store.keep(turns);
    expect(store.all()).toEqual([{ ...turns, folder: join(folder, 'kept') }]);
    writeFileSync(join(folder, 'kept', 'b-one_two-1.json'), '{"part": "b"');
    expect(store.find(turns)).toBeUndefined();
  });

  it('what a stopped unit had measured is there, and says that it was stopped; no aim is held against it', () => {
    const text = written([{ ...turns, stopped: true }]);
    expect(text).toContain('### (b) Wishes in turn, then all together, stopped before its end');
    expect(text).toMatch(/\| \(b\) each wish keeps 0\.8 of its own best +\| not run/);
  });

  it('what is asked at the end of a run alone is not known of one that was stopped', () => {
    const attempts = result('j', 'one, outcome alone', [row('one', 'one', 3, 0.2)]);
    const said = result('i', 'one', [row('one', 'one', 3, 0.2)]);
    const text = written([turns, attempts, said].map((one) => ({ ...one, stopped: true })));
    expect(text).toContain('Lessons at the end: not known.');
    expect(text).toContain('| outcome alone, stopped before its end | not known |');
    expect(text).toContain('| one, stopped before its end | not known |');
    expect(text).toContain(
      '| (b) one+two, stopped before its end | not known | not known | 0 | 0 | 0 of 0 | 1 | not known |',
    );
  });
});

describe('kept results', () => {
  it('a unit that was stopped is run again, and its measurements stay until then', () => {
    const store = new ResultStore(folder);
    store.keep({ ...turns, stopped: true });
    expect(store.find(turns)).toBeUndefined();
    expect(store.all().map(({ rows }) => rows.length)).toEqual([turns.rows.length]);
    store.keep(turns);
    expect(store.find(turns)?.stopped).toBe(false);
    expect(store.all()).toHaveLength(1);
  });

  it('a result that was made from another user’s file or recipe is not found; one of before, which says nothing of it, is', () => {
    const store = new ResultStore(folder);
    store.keep(turns);
    expect(store.find({ ...turns, madeFrom: 'one' })).toBeDefined();
    store.keep({ ...turns, madeFrom: 'one' });
    expect(store.find({ ...turns, madeFrom: 'one' })).toBeDefined();
    expect(store.find({ ...turns, madeFrom: 'other' })).toBeUndefined();
  });

  it('users whose paths read alike have a file each', () => {
    const store = new ResultStore(folder);
    store.keep({ ...turns, name: './a/x.json', minutes: 1 });
    store.keep({ ...turns, name: './a_x.json', minutes: 2 });
    expect(store.find({ ...turns, name: './a/x.json' })?.minutes).toBe(1);
    expect(store.find({ ...turns, name: './a_x.json' })?.minutes).toBe(2);
  });

  it('each name of before is kept in the file that it had', () => {
    expect(fileNameOf({ part: 'h', name: 'small-letters, opd, full, reverse KL', seed: 1 })).toBe(
      'h-small-letters_opd_full_reverse_KL-1',
    );
    expect(fileNameOf({ part: 'b', name: 'emoji+few-words', seed: 2 })).toBe('b-emoji_few-words-2');
  });
});
