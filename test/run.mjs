#!/usr/bin/env node
// `npm test`: sets up what is missing, runs every check and every test of the house, and adds them up.
// It needs nothing but Node. Before its end it names what was skipped, and why. Its very last line, alone, is `N passed, N failed`,
// with `, N skipped` where tests were; it exits 1 if anything failed.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runCommand } from './run/command.mjs';
import { countJunit, countStep, countVitest, slowestFiles, summaryLine } from './run/counts.mjs';
import { listSteps, parts, setUp } from './run/steps.mjs';
import takeTemporaryFolder from './run/temporary-folder.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const help = `Usage: npm test -- [--only ${parts.join('|')}]

Without options: sets up what is missing, then runs the tests of the whole loop, of the worker and of each part, and checks
format, types, style and wire types, two of these beside each other.

  --only PART   run one part: ${parts.join(', ')}
  --help        this text`;

/** @param {string} line */
function say(line) {
  process.stdout.write(`${line}\n`);
}

/** @param {number} since */
function seconds(since) {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}

/**
 * @param {import('./run/steps.mjs').Step} step
 * @param {boolean} succeeded
 */
function count({ report }, succeeded) {
  if (report === undefined || !existsSync(report.file)) return countStep(succeeded && report === undefined);
  const text = readFileSync(report.file, 'utf8');
  return report.kind === 'vitest' ? countVitest(text, succeeded) : countJunit(text, succeeded);
}

/**
 * Where the time of a long step went.
 * @param {import('./run/steps.mjs').Step} step
 */
function saySlowest({ report }) {
  if (report?.kind !== 'vitest' || !existsSync(report.file)) return;
  for (const { file, seconds: taken } of slowestFiles(readFileSync(report.file, 'utf8'), 8)) {
    if (taken >= 10) say(`    ${taken.toFixed(1).padStart(6)} s  ${relative(root, file)}`);
  }
}

/**
 * @param {import('./run/steps.mjs').Step} step
 * @param {() => string} place
 */
async function runStep(step, place) {
  const startedAt = performance.now();
  say(`▶ ${step.name}`);
  const { succeeded, output } = await runCommand(step.command, step);
  const counts = count(step, succeeded);
  const passed = counts.failed === 0;
  if (!passed) say(output.trimEnd());
  const tests = step.report === undefined ? '' : `: ${summaryLine(counts)}`;
  say(`${passed ? '✓' : '✗'} ${place()} ${step.name}${tests} (${seconds(startedAt)})`);
  saySlowest(step);
  return counts;
}

/** @param {string | undefined} only */
async function runAll(only) {
  /** @type {import('./run/counts.mjs').Counts} */
  const total = { passed: 0, failed: 0, skipped: [] };
  say('▶ set-up');
  const { succeeded } = await runCommand(setUp, { cwd: root, minutes: 60, show: true });
  if (!succeeded) return { ...total, failed: 1 };
  const removeTemporaryFolder = takeTemporaryFolder();
  const reports = mkdtempSync(join(tmpdir(), 'backtalk-test-'));
  /** @param {import('./run/steps.mjs').Step} step */
  const wanted = (step) => only === undefined || step.parts.some((part) => part === only);
  const { build, others } = listSteps(root, reports);
  const first = [build].filter(wanted);
  const then = others.filter(wanted);
  const count = first.length + then.length;
  let ended = 0;
  /** @param {import('./run/steps.mjs').Step[]} queue */
  const takeFrom = async (queue) => {
    for (let step = queue.shift(); step !== undefined; step = queue.shift()) {
      const { passed, failed, skipped } = await runStep(step, () => `[${++ended}/${count}]`);
      total.passed += passed;
      total.failed += failed;
      total.skipped.push(...skipped);
    }
  };
  await takeFrom(first);
  await Promise.all([takeFrom(then), takeFrom(then)]);
  rmSync(reports, { recursive: true });
  removeTemporaryFolder?.();
  return total;
}

/** @returns {{ only?: string, help?: boolean }} */
function given() {
  try {
    return parseArgs({ options: { only: { type: 'string' }, help: { type: 'boolean', short: 'h' } } }).values;
  } catch (error) {
    say(`${error instanceof Error ? error.message : String(error)}. See --help.`);
    return process.exit(2);
  }
}

const values = given();

if (values.help === true) {
  say(help);
} else if (values.only !== undefined && !parts.some((part) => part === values.only)) {
  say(`There is no part '${values.only}': choose one of ${parts.join(', ')}.`);
  process.exitCode = 2;
} else {
  const startedAt = performance.now();
  const counts = await runAll(values.only);
  say(`\nAll of it took ${seconds(startedAt)}.`);
  if (counts.skipped.length > 0) say('\nSkipped:');
  for (const { name, reason } of counts.skipped) say(`  ${name} — ${reason}`);
  say(summaryLine(counts));
  process.exitCode = counts.failed === 0 ? 0 : 1;
}
