// The figures of docs/learning.md and its pictures, from kept results. The words around them stand in the document itself: what
// lies between the two marks is replaced, and nothing else. What a part's results lack is said as not run.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { lineChart } from './chart.js';
import { stepsOf } from './cost-section.js';
import {
  aloneOf,
  baseOf,
  ceilingOf,
  comparisonsFor,
  isLearned,
  keptOf,
  longestAlone,
  toldOf,
  versionsOf,
  type Kept,
} from './findings.js';
import { partNames, type LearningPlan } from './options.js';
import { attempted, sideBySide } from './reached-sections.js';
import { fileNameOf, oneEach, reminded, shownLessons, type UnitResult } from './result.js';
import { atEnd, axes, change, labelOf, ofRun, ratio, seriesOf, share, table, type Section } from './section.js';
import { targetsOf } from './targets.js';

const marks = { begin: '<!-- figures -->', end: '<!-- end of figures -->' };

/** Writes the document and the pictures beside it. */
export function writeDocument({ document, sizes }: LearningPlan, results: readonly UnitResult[], about: string): void {
  const sections = sectionsOf(results);
  const pictures = join(dirname(document), 'learning');
  mkdirSync(pictures, { recursive: true });
  const shown = sections.flatMap(({ title, lines, chart }) => {
    if (chart !== undefined) writeFileSync(join(pictures, chart.file), chart.svg);
    const picture = chart === undefined ? [] : [`![${title}](learning/${chart.file})`, ''];
    return [`### ${title}`, '', ...picture, ...lines, ''];
  });
  const amount = `held-out questions: ${String(sizes.questions)} × ${String(sizes.samples)}`;
  const figures = [marks.begin, '', `${about}; ${amount}.`, '', ...shown, marks.end].join('\n');
  const words = existsSync(document)
    ? readFileSync(document, 'utf8')
    : `# Does it learn?\n\n${marks.begin}\n${marks.end}\n`;
  const [before = '', rest = ''] = words.split(marks.begin);
  const [, after = '\n'] = rest.split(marks.end);
  writeFileSync(document, `${before}${figures}${after}`);
}

function sectionsOf(results: readonly UnitResult[]): Section[] {
  const of = (part: string) => results.filter((result) => result.part === part);
  const sections = [
    eachAlone(results, longestAlone(results)),
    ...of('b').map((result) => inTurn(nearestFirst(results, result), result)),
    ...of('c').map((result) => twoPeople(nearestFirst(results, result), result)),
    ...of('d').map((result) => blocks(nearestFirst(results, result), result, 'd', 'A person who changes their mind')),
    controls(results, of('e')),
    besideAlone(results, of('f'), '(f) Mixed temperatures', 'half of the sessions at .1, half at .8'),
    besideAlone(results, of('g'), '(g) Hostile feedback', 'three of ten sessions hostile'),
    sideBySide(results, of('h')),
    oneCorrection(results, of('i')),
    attempted(results, of('j')),
    targets(results),
    stepsOf(results),
  ];
  const missing = partNames.filter((part) => of(part).length === 0).map((part) => `(${part})`);
  const halves = of('c').map(({ name }) => name.endsWith(oneEach));
  if (halves.length > 0 && !halves.includes(true)) missing.push('(c) on one each');
  if (halves.length > 0 && !halves.includes(false)) missing.push('(c) on one adapter');
  const unrun = { title: 'Not run', lines: [`Parts ${missing.join(', ')}.`] };
  return [...sections.filter((section) => section !== undefined), ...(missing.length === 0 ? [] : [unrun])];
}

/** A unit is compared with what was measured beside it, where that was. */
function nearestFirst(results: readonly UnitResult[], { folder }: UnitResult): UnitResult[] {
  return results.toSorted((a, b) => Number(b.folder === folder) - Number(a.folder === folder));
}

function eachAlone(results: readonly UnitResult[], own: readonly UnitResult[]): Section | undefined {
  if (own.length === 0) return undefined;
  const rows = own.map((result) => {
    const { name } = result;
    const compared = comparisonsFor(results, name, result).map(({ scores }) => share(scores.headline));
    const versions = versionsOf(result, name);
    const last = versions.at(-1);
    const climb = versions.map((row) => `v${String(row.step)} ${share(row.scores.headline)}`).join(' · ');
    const reached = ratio(last?.scores.headline, ceilingOf(results, name, result));
    const degenerate = last === undefined ? '–' : share(last.scores.empty + last.scores.looping);
    const base = baseOf(results, name, result);
    const told = toldOf(results, name, result);
    const own = [
      share(last?.scores.obeys),
      share(last?.scores.hit),
      degenerate,
      change(last, base),
      change(told, base),
      share(last?.reference?.skill),
    ];
    const taught = result.rows.find((row) => row.name === shownLessons);
    return [labelOf(result), ...compared, share(taught?.scores.headline), climb, reached, ...own];
  });
  const header = [
    'wish',
    'base',
    'shown the wish',
    'first sentence',
    'shuffled',
    'shown its lessons',
    'headline by version',
    'last ÷ shown',
  ];
  const more = ['obeys', 'hit', 'empty or looping', 'NLL change', 'of the base shown the wish', 'skill'];
  const series = own.map((result) => seriesOf(results, result, result.name, labelOf(result)));
  return {
    title: '(a) Each wish alone',
    lines: table([...header, ...more], rows),
    chart: { file: 'alone.svg', svg: lineChart(axes('Each wish alone (dashed: base shown the wish)'), series) },
  };
}

/** The rows of one unit by block and step, with a column for each wish. */
function byBlock(results: readonly UnitResult[], result: UnitResult, wishes: readonly string[]): string[] {
  const versions = result.rows.filter(({ block }) => block !== '');
  const stops = [...new Set(versions.map(({ block, step }) => `${block}\n${String(step)}`))];
  const base = wishes.map((of) => baseOf(results, of, result));
  const rows = stops.map((stop) => {
    const here = versions.filter(({ block, step }) => `${block}\n${String(step)}` === stop);
    const [block = '', step = ''] = stop.split('\n');
    const headlines = wishes.map((of) => share(here.find((row) => row.of === of)?.scores.headline));
    const [first] = here;
    return [block, `v${step}`, ...headlines, change(first, base[0]), share(first?.reference?.skill)];
  });
  const start = ['base', 'v0', ...base.map((row) => share(row?.scores.headline)), '', share(base[0]?.reference?.skill)];
  const ceiling = ['shown the wish', '', ...wishes.map((of) => share(ceilingOf(results, of, result))), '', ''];
  return table(['after', 'version', ...wishes, 'NLL change', 'skill'], [ceiling, start, ...rows]);
}

function blocks(results: readonly UnitResult[], result: UnitResult, part: string, title: string): Section {
  const wishes = [...new Set(result.rows.map(({ of }) => of))];
  const series = wishes.map((of) => seriesOf(results, result, of, of));
  return {
    title: `(${part}) ${title}${ofRun(result)}`,
    lines: [...byBlock(results, result, wishes), '', lessonsLine(result)],
    chart: { file: `${fileNameOf(result)}.svg`, svg: lineChart(axes(title), series) },
  };
}

function twoPeople(results: readonly UnitResult[], result: UnitResult): Section {
  const about = 'Opposite wishes of two people, on';
  return result.name.endsWith(oneEach)
    ? blocks(results, result, 'c', `${about} one adapter each`)
    : blocks(results, result, 'c', `${about} one adapter`);
}

function inTurn(results: readonly UnitResult[], result: UnitResult): Section {
  const section = blocks(results, result, 'b', 'Wishes in turn, then all together');
  const rows = result.name.split('+').map((of) => {
    const kept = keptOf(result, of);
    return [of, share(kept.best), share(kept.last), share(kept.share), verdictOn(kept, ceilingOf(results, of, result))];
  });
  const verdict = 'verdict (learned: best ≥ .50 of shown the wish)';
  const forgotten = table(['wish', 'its best', 'after the last block', 'last ÷ best (aim ≥ .80)', verdict], rows);
  return { ...section, lines: [...section.lines, '', ...forgotten] };
}

function verdictOn(kept: Kept, ceiling: number | undefined): string {
  if (!isLearned(kept, ceiling)) return 'never learned';
  if (kept.share === undefined) return 'learned at the end';
  return kept.share >= 0.8 ? 'kept' : 'LOST';
}

function lessonsLine(result: UnitResult): string {
  const { lessons } = result;
  const states = [...new Set(lessons.map(({ state }) => state))];
  const counted = states.map((state) => `${String(lessons.filter((one) => one.state === state).length)} ${state}`);
  return `Lessons at the end: ${atEnd(result, counted.length === 0 ? 'none' : counted.join(', '))}.`;
}

function controls(results: readonly UnitResult[], own: readonly UnitResult[]): Section | undefined {
  if (own.length === 0) return undefined;
  const rows = own.map((result) => {
    const [of = ''] = result.name.split(', ');
    const gainOf = (one: UnitResult | undefined) => {
      const last = one === undefined ? undefined : versionsOf(one, of).at(-1);
      const base = baseOf(results, of, result);
      return last === undefined || base === undefined ? undefined : last.scores.headline - base.scores.headline;
    };
    const right = aloneOf(results, of, result);
    const last = versionsOf(result, of).at(-1);
    const gains = [share(gainOf(result)), share(gainOf(right)), ratio(gainOf(result), gainOf(right))];
    return [
      labelOf(result),
      `v${String(last?.step ?? 0)}`,
      share(last?.scores.headline),
      share(last?.scores.obeys),
      ...gains,
    ];
  });
  const header = [
    'control',
    'version',
    'headline',
    'obeys',
    'gain',
    'gain with the right teacher',
    'ratio (aim ≤ .30)',
  ];
  return { title: '(e) Controls', lines: table(header, rows) };
}

/** A wish as part (a) has it, but for one thing. */
function besideAlone(
  results: readonly UnitResult[],
  own: readonly UnitResult[],
  title: string,
  changed: string,
): Section | undefined {
  if (own.length === 0) return undefined;
  const rows = own.map((result) => {
    const right = aloneOf(results, result.name, result);
    const climb = (one: UnitResult | undefined) =>
      one === undefined
        ? '–'
        : versionsOf(one, result.name)
            .map((row) => `v${String(row.step)} ${share(row.scores.headline)}`)
            .join(' · ');
    return [labelOf(result), climb(result), climb(right), share(ceilingOf(results, result.name, result))];
  });
  return { title, lines: table(['wish', changed, 'alone, as in (a)', 'shown the wish'], rows) };
}

/** What one correction came to, and when. */
function oneCorrection(results: readonly UnitResult[], own: readonly UnitResult[]): Section | undefined {
  if (own.length === 0) return undefined;
  const rows = own.map((result) => {
    const { name, talk } = result;
    const versions = versionsOf(result, name);
    const climb = versions.map(
      ({ step, scores, seconds = 0 }) => `v${String(step)} ${share(scores.headline)} (${seconds.toFixed(0)} s)`,
    );
    const last = versions.at(-1);
    const compared = [baseOf(results, name, result)?.scores.headline, ceilingOf(results, name, result)].map(share);
    const reached = ratio(last?.scores.headline, ceilingOf(results, name, result));
    const corrected = talk.reduce((sum, one) => sum + one.corrected, 0);
    return [
      labelOf(result),
      atEnd(result, String(corrected)),
      ...compared,
      climb.join(' · '),
      reached,
      share(last?.scores.obeys),
    ];
  });
  const header = [
    'wish',
    'corrections',
    'base',
    'shown the wish',
    'headline by version (seconds since; of later ones with what was measured between)',
    'last ÷ shown',
    'obeys',
  ];
  const lines = [...table(header, rows), ...twoSpeeds(own)];
  return { title: '(i) One correction, and then silence', lines };
}

/** What being reminded of a lesson is worth at once, and what it costs once it is learned. */
function twoSpeeds(own: readonly UnitResult[]): string[] {
  const rows = own.flatMap((result) =>
    result.rows.flatMap((row) => {
      const plain = result.rows.find(({ name, prompt }) => `${name}${reminded}` === row.name && prompt !== undefined);
      if (plain?.prompt === undefined || row.prompt === undefined) return [];
      const tokens = [plain.prompt.tokens, row.prompt.tokens].map((mean) => mean.toFixed(1));
      const scores = [plain, row].map(({ scores: { headline, obeys } }) => `${share(headline)} (${share(obeys)})`);
      return [[labelOf(result), plain.name, ...scores, row.prompt.shown.toFixed(2), ...tokens]];
    }),
  );
  if (rows.length === 0) return [];
  const header = [
    'wish',
    'what serves',
    'plain (obeys)',
    'reminded (obeys)',
    'lessons shown',
    'tokens of a plain prompt',
    'reminded',
  ];
  return [
    '',
    'A client that asks to be reminded (`X-Backtalk-Lessons: on`) beside one that does not:',
    '',
    ...table(header, rows),
  ];
}

function targets(results: readonly UnitResult[]): Section | undefined {
  if (results.every(({ part }) => part === 'base')) return undefined;
  const rows = targetsOf(results).map(({ aim, cases }) => {
    const each = cases.map(({ name, value, isMet }) => `${name} ${value}${isMet ? '' : ' (missed)'}`).join(' · ');
    const met = cases.filter(({ isMet }) => isMet).length;
    return [aim, cases.length === 0 ? 'not run' : `${String(met)} of ${String(cases.length)}`, each];
  });
  return { title: 'Targets', lines: table(['aim', 'met', 'each'], rows) };
}
