// The summary line of a test run. In: the lines that a tool printed. Out: whether tests failed. Only the shapes that
// known test runners end with are read.
import type { EvidenceVote } from './verdict.js';

/** Summaries stand at the end. */
const tailLines = 12;

interface Shape {
  readonly name: string;
  readonly failed: RegExp;
  readonly passed: RegExp;
}

const shapes: readonly Shape[] = [
  { name: 'pytest', failed: /^=+ .*\b[1-9]\d* (?:failed|errors?)\b.* =+$/, passed: /^=+ .*\b\d+ passed\b.* =+$/ },
  { name: 'unittest', failed: /^FAILED \((?:failures|errors)=/, passed: /^OK(?: \(skipped=\d+\))?$/ },
  { name: 'jest', failed: /^Tests:? +.*\b[1-9]\d* failed\b/, passed: /^Tests:? +.*\b\d+ passed\b/ },
  { name: 'tap', failed: /^# fail [1-9]/, passed: /^# fail 0$/ },
  { name: 'mocha', failed: /^[1-9]\d* failing\b/, passed: /^\d+ passing\b/ },
  { name: 'cargo', failed: /^test result: FAILED\b/, passed: /^test result: ok\b/ },
  { name: 'go', failed: /^(?:--- )?FAIL\b/, passed: /^ok\s+\S+\s+(?:[\d.]+s|\(cached\))/ },
];

export function testEvidence(lines: readonly string[]): EvidenceVote | undefined {
  const tail = lines.slice(-tailLines);
  const failed = shapes.find((shape) => tail.some((line) => shape.failed.test(line)));
  if (failed !== undefined) return { name: 'test_verdict', verdict: -1, detail: failed.name };
  const passed = shapes.find((shape) => tail.some((line) => shape.passed.test(line)));
  return passed === undefined ? undefined : { name: 'test_verdict', verdict: 1, detail: passed.name };
}
