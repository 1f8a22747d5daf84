import { describe, expect, it } from 'vitest';
import { countJunit, countStep, countVitest } from './counts.mjs';

function vitestReport(passed: number, failed: number, files: readonly { status: string; tests: readonly string[] }[]) {
  const testResults = files.map(({ status, tests }) => ({
    status,
    assertionResults: tests.map((test) => ({ status: test })),
  }));
  return JSON.stringify({ numPassedTests: passed, numFailedTests: failed, testResults });
}

describe('countVitest', () => {
  it('takes the runner’s own numbers', () => {
    const report = vitestReport(2, 1, [{ status: 'failed', tests: ['passed', 'passed', 'failed'] }]);
    expect(countVitest(report, false)).toEqual({ passed: 2, failed: 1 });
  });

  it('counts a file that broke before its tests as one failure', () => {
    const report = vitestReport(1, 0, [
      { status: 'passed', tests: ['passed'] },
      { status: 'failed', tests: [] },
    ]);
    expect(countVitest(report, false)).toEqual({ passed: 1, failed: 1 });
  });

  it('counts a bad end as a failure although every test passed', () => {
    const report = vitestReport(1, 0, [{ status: 'passed', tests: ['passed'] }]);
    expect(countVitest(report, false)).toEqual({ passed: 1, failed: 1 });
    expect(countVitest(report, true)).toEqual({ passed: 1, failed: 0 });
  });
});

describe('countJunit', () => {
  const report =
    '<testsuites name="t"><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="16" time="1.0"></testsuite></testsuites>';

  it('adds failures and errors, and leaves skipped tests out', () => {
    expect(countJunit(report, false)).toEqual({ passed: 10, failed: 3 });
  });

  it('counts a runner that ended without a suite as one failure', () => {
    expect(countJunit('<testsuites></testsuites>', false)).toEqual({ passed: 0, failed: 1 });
  });
});

describe('countStep', () => {
  it('is one or the other', () => {
    expect(countStep(true)).toEqual({ passed: 1, failed: 0 });
    expect(countStep(false)).toEqual({ passed: 0, failed: 1 });
  });
});
