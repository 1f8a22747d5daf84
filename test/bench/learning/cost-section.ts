// The section of the document that says what each unit took: talk, steps, time, and what it ran on.
import type { UnitResult } from './result.js';
import { atEnd, labelOf, table, type Section } from './section.js';

/** What each unit cost, and whether its steps were taken. */
export function stepsOf(results: readonly UnitResult[]): Section | undefined {
  const units = results.filter(({ part }) => part !== 'base');
  if (units.length === 0) return undefined;
  const rows = units.map((result) => {
    const taken = result.steps.filter(({ stage }) => stage !== 'burned');
    const sessions = result.talk.reduce((sum, talk) => sum + talk.sessions, 0);
    const corrected = result.talk.reduce((sum, talk) => sum + talk.corrected, 0);
    const hinted = result.steps.reduce((sum, step) => sum + step.hinted, 0);
    const samples = result.steps.reduce((sum, step) => sum + step.samples, 0);
    const burned = result.steps.length - taken.length;
    const said = [sessions, corrected].map((count) => atEnd(result, String(count)));
    const counts = [result.steps.length, burned].map(String);
    const load = result.load.map((one) => one.toFixed(1)).join(' → ');
    return [
      `(${result.part}) ${labelOf(result)}`,
      ...said,
      ...counts,
      `${String(hinted)} of ${String(samples)}`,
      result.minutes.toFixed(0),
      atEnd(result, load),
      `${result.processor}, ${result.day}`,
    ];
  });
  const header = [
    'run',
    'sessions',
    'corrected',
    'steps',
    'burned',
    'samples with a hint or lesson',
    'minutes',
    'load',
    'on',
  ];
  return { title: 'What it took', lines: table(header, rows) };
}
