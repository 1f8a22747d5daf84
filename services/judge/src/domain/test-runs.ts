// The summary line of a test run. In: the lines that a tool printed. Out: whether tests failed. Only the shapes that
// known test runners end with are read.
import type { EvidenceVote } from './verdict.js';

/** Summaries stand at the end. */
const tailLines = 12;

/** A longer line is no summary. */
const lineCharactersMax = 400;

type Matches = (line: string) => boolean;

interface Shape {
  readonly name: string;
  readonly failed: Matches;
  readonly passed: Matches;
  /** Stands before the summary where that alone says too little. */
  readonly before?: Matches;
}

const like =
  (pattern: RegExp): Matches =>
  (line) =>
    pattern.test(line);
/** "=== 2 failed, 1 passed in 0.1s ===" */
const ruled =
  (count: RegExp): Matches =>
  (line) =>
    line.startsWith('=') && line.endsWith('=') && count.test(line);
const afterTests =
  (count: RegExp): Matches =>
  (line) =>
    /^Tests:? /.test(line) && count.test(line);

const shapes: readonly Shape[] = [
  { name: 'pytest', failed: ruled(/ [1-9]\d* (?:failed|errors?)\b/), passed: ruled(/ \d+ passed\b/) },
  {
    name: 'unittest',
    failed: like(/^FAILED \((?:failures|errors)=/),
    passed: like(/^OK(?: \(skipped=\d+\))?$/),
    before: like(/^Ran \d+ tests? in /),
  },
  // A file that could not be loaded has no test that failed.
  {
    name: 'jest',
    failed: like(/^(?:Tests|Test (?:Suites|Files)):?\s+(?:\d+ \w+[,| ]+)*[1-9]\d* failed\b/),
    passed: afterTests(/ [1-9]\d* passed\b/),
  },
  { name: 'tap', failed: like(/^# (?:fail|cancelled) [1-9]/), passed: like(/^# fail 0$/) },
  { name: 'mocha', failed: like(/^[1-9]\d* failing\b/), passed: like(/^[1-9]\d* passing\b/) },
  { name: 'cargo', failed: like(/^test result: FAILED\b/), passed: like(/^test result: ok\b/) },
  { name: 'go', failed: like(/^(?:--- )?FAIL\b/), passed: like(/^ok\s+\S+\s+(?:[\d.]+s|\(cached\))/) },
];

export function testEvidence(lines: readonly string[]): EvidenceVote | undefined {
  const tail = lines.slice(-tailLines).filter((line) => line.length <= lineCharactersMax);
  const failed = shapes.find((shape) => tail.some((line) => shape.failed(line)));
  if (failed !== undefined) return { name: 'test_verdict', verdict: -1, detail: failed.name };
  const passed = shapes.find(
    ({ passed: isPassed, before }) => tail.some(isPassed) && (before === undefined || tail.some(before)),
  );
  return passed === undefined ? undefined : { name: 'test_verdict', verdict: 1, detail: passed.name };
}
