import { describe, expect, it } from 'vitest';
import { countJunit, countStep, countVitest, slowestFiles, summaryLine } from './counts.mjs';

interface TestRow {
  readonly status: string;
  readonly title?: string;
  readonly ancestorTitles?: readonly string[];
}

function vitestReport(passed: number, failed: number, files: readonly { status: string; tests: readonly TestRow[] }[]) {
  const testResults = files.map(({ status, tests }) => ({
    status,
    assertionResults: tests.map((test) => ({ title: 'a test', ancestorTitles: [], ...test })),
  }));
  return JSON.stringify({ numPassedTests: passed, numFailedTests: failed, testResults });
}

describe('countVitest', () => {
  it('takes the runner’s own numbers', () => {
    const tests = ['passed', 'passed', 'failed'].map((status) => ({ status }));
    const report = vitestReport(2, 1, [{ status: 'failed', tests }]);
    expect(countVitest(report, false)).toEqual({ passed: 2, failed: 1, skipped: [] });
  });

  it('counts a file that broke before its tests as one failure, and its tests not as skipped', () => {
    const report = vitestReport(1, 0, [
      { status: 'passed', tests: [{ status: 'passed' }] },
      { status: 'failed', tests: [{ status: 'skipped' }] },
    ]);
    expect(countVitest(report, false)).toEqual({ passed: 1, failed: 1, skipped: [] });
  });

  it('counts a bad end as a failure although every test passed', () => {
    const report = vitestReport(1, 0, [{ status: 'passed', tests: [{ status: 'passed' }] }]);
    expect(countVitest(report, false)).toEqual({ passed: 1, failed: 1, skipped: [] });
    expect(countVitest(report, true)).toEqual({ passed: 1, failed: 0, skipped: [] });
  });

  it('tells which files took longest', () => {
    const [slow, slower, quick] = [20_000, 30_000, 10].map((endTime) => ({
      name: `${endTime}.ts`,
      startTime: 0,
      endTime,
    }));
    expect(slowestFiles(JSON.stringify({ testResults: [slow, slower, quick] }), 2)).toEqual([
      { file: '30000.ts', seconds: 30 },
      { file: '20000.ts', seconds: 20 },
    ]);
  });

  it('names every skipped, pending and planned test, with the reason in a title of it', () => {
    const tests = [
      { status: 'passed' },
      { status: 'skipped', ancestorTitles: ['blobs in S3 (skipped: no moto (pip: 404))'], title: 'come back' },
      { status: 'pending', ancestorTitles: ['queue'], title: 'empties (skipped: no Valkey)' },
      { status: 'todo', title: 'some day' },
    ];
    expect(countVitest(vitestReport(1, 0, [{ status: 'passed', tests }]), true)).toEqual({
      passed: 1,
      failed: 0,
      skipped: [
        { name: 'blobs in S3 › come back', reason: 'no moto (pip: 404)' },
        { name: 'queue › empties', reason: 'no Valkey' },
        { name: 'some day', reason: 'no reason is given' },
      ],
    });
  });
});

describe('countJunit', () => {
  const suite = 'name="pytest" errors="1" failures="2" skipped="2" tests="16" time="1.0"';
  const tests =
    '<testcase classname="tests.test_a" name="test_runs" time="0.1" /><testcase classname="tests.test_a" name="test_gpu[a-1]" time="0.0">' +
    '<skipped type="pytest.skip" message="needs a &lt;GPU&gt;">tests/test_a.py:3: needs a GPU</skipped></testcase>' +
    '<testcase classname="" name="tests.test_b" time="0.0"><skipped type="pytest.skip" message="no torch" /></testcase>';
  const report = `<testsuites name="t"><testsuite ${suite}>${tests}</testsuite></testsuites>`;

  it('adds failures and errors, and names skipped tests with pytest’s own reason', () => {
    expect(countJunit(report, false)).toEqual({
      passed: 11,
      failed: 3,
      skipped: [
        { name: 'tests.test_a.test_gpu[a-1]', reason: 'needs a <GPU>' },
        { name: 'tests.test_b', reason: 'no torch' },
      ],
    });
  });

  it('counts a runner that ended without a suite as one failure', () => {
    expect(countJunit('<testsuites></testsuites>', false)).toEqual({ passed: 0, failed: 1, skipped: [] });
  });
});

describe('countStep', () => {
  it('a step counts as one passed or one failed', () => {
    expect(countStep(true)).toEqual({ passed: 1, failed: 0, skipped: [] });
    expect(countStep(false)).toEqual({ passed: 0, failed: 1, skipped: [] });
  });
});

describe('summaryLine', () => {
  it('names skipped tests only where there are any', () => {
    expect(summaryLine({ passed: 3, failed: 0, skipped: [] })).toBe('3 passed, 0 failed');
    expect(summaryLine({ passed: 3, failed: 1, skipped: [{ name: 'a', reason: 'b' }] })).toBe(
      '3 passed, 1 failed, 1 skipped',
    );
  });
});
