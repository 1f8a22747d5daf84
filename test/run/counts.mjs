// How many tests passed and failed. In: a runner's report and whether the runner ended well. Out: two numbers.
// A runner that ended badly counts as one failure at least, whatever its report says. Pure.

/** @typedef {{ passed: number, failed: number }} Counts */

/**
 * A step that is no test runner: it passed or it failed.
 * @param {boolean} succeeded
 * @returns {Counts}
 */
export function countStep(succeeded) {
  return { passed: succeeded ? 1 : 0, failed: succeeded ? 0 : 1 };
}

/**
 * Vitest's JSON report. A file that fails before its tests run has no failed test, and counts as one.
 * @param {string} report
 * @param {boolean} succeeded
 * @returns {Counts}
 */
export function countVitest(report, succeeded) {
  /** @type {{ numPassedTests: number, numFailedTests: number, testResults: { status: string, assertionResults: { status: string }[] }[] }} */
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(report);
  const brokenFiles = testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length;
  return atLeastOneFailure({ passed: numPassedTests, failed: numFailedTests + brokenFiles }, succeeded);
}

/**
 * A JUnit report, as pytest writes it.
 * @param {string} report
 * @param {boolean} succeeded
 * @returns {Counts}
 */
export function countJunit(report, succeeded) {
  const suites = [...report.matchAll(/<testsuite\s([^>]*)>/g)].map(([, attributes]) => attributes ?? '');
  /** @param {string} name */
  const sum = (name) =>
    suites.reduce(
      (total, attributes) => total + Number(new RegExp(`\\b${name}="(\\d+)"`).exec(attributes)?.[1] ?? 0),
      0,
    );
  const failed = sum('failures') + sum('errors');
  return atLeastOneFailure({ passed: sum('tests') - failed - sum('skipped'), failed }, succeeded);
}

/**
 * @param {Counts} counts
 * @param {boolean} succeeded
 * @returns {Counts}
 */
function atLeastOneFailure(counts, succeeded) {
  return succeeded || counts.failed > 0 ? counts : { ...counts, failed: 1 };
}
