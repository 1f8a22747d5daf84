// How many tests passed, failed and were skipped, and why these were. In: a runner's report and whether the runner ended well.
// A runner that ended badly counts as one failure at least, whatever its report says. Pure.

/** @typedef {{ name: string, reason: string }} Skipped */
/** @typedef {{ passed: number, failed: number, skipped: Skipped[] }} Counts */

const noReason = 'no reason is given';

/**
 * A step that is no test runner: it passed or it failed.
 * @param {boolean} succeeded
 * @returns {Counts}
 */
export function countStep(succeeded) {
  return { passed: succeeded ? 1 : 0, failed: succeeded ? 0 : 1, skipped: [] };
}

/**
 * Vitest's JSON report. A file that fails before its tests run has no failed test, and counts as one. What neither passed nor
 * failed was skipped; where it failed as a whole file, that is said already.
 * @param {string} report
 * @param {boolean} succeeded
 * @returns {Counts}
 */
export function countVitest(report, succeeded) {
  /** @type {{ numPassedTests: number, numFailedTests: number, testResults: { status: string, assertionResults: { status: string, title: string, ancestorTitles: string[] }[] }[] }} */
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(report);
  const brokenFiles = testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  );
  const skipped = testResults
    .filter((file) => !brokenFiles.includes(file))
    .flatMap((file) => file.assertionResults)
    .filter(({ status }) => status !== 'passed' && status !== 'failed')
    .map(({ ancestorTitles, title }) => skippedTest([...ancestorTitles, title]));
  return atLeastOneFailure({ passed: numPassedTests, failed: numFailedTests + brokenFiles.length, skipped }, succeeded);
}

/**
 * The files of Vitest's JSON report that took longest, slowest first.
 * @param {string} report
 * @param {number} count
 * @returns {{ file: string, seconds: number }[]}
 */
export function slowestFiles(report, count) {
  /** @type {{ testResults: { name: string, startTime: number, endTime: number }[] }} */
  const { testResults } = JSON.parse(report);
  return testResults
    .map(({ name, startTime, endTime }) => ({ file: name, seconds: (endTime - startTime) / 1000 }))
    .sort((one, other) => other.seconds - one.seconds)
    .slice(0, count);
}

/**
 * A JUnit report, as pytest writes it.
 * @param {string} report
 * @param {boolean} succeeded
 * @returns {Counts}
 */
export function countJunit(report, succeeded) {
  const suites = [...report.matchAll(/<testsuite\s([^>]*)>/g)].map(([, attributes = '']) => attributes);
  /** @param {string} name */
  const sum = (name) => suites.reduce((total, attributes) => total + Number(attribute(attributes, name) || 0), 0);
  const failed = sum('failures') + sum('errors');
  const skipped = [...report.matchAll(/<testcase\s([^>]*[^/])>\s*<skipped\s([^>]*)>/g)].map(
    ([, test = '', skip = '']) => ({
      name: [attribute(test, 'classname'), attribute(test, 'name')].filter((part) => part !== '').join('.'),
      reason: attribute(skip, 'message') || noReason,
    }),
  );
  return atLeastOneFailure({ passed: sum('tests') - failed - sum('skipped'), failed, skipped }, succeeded);
}

/**
 * A suite or test that may be skipped says why in its title: `panels of the loop (skipped: apt-get is not here)`.
 * @param {string[]} titles
 * @returns {Skipped}
 */
function skippedTest(titles) {
  const found = titles.map((title) => /^(.*)\(skipped: (.*)\)$/s.exec(title));
  const name = titles.map((title, at) => found[at]?.[1]?.trimEnd() ?? title).filter((title) => title !== '');
  return { name: name.join(' › '), reason: found.find((one) => one !== null)?.[2] ?? noReason };
}

/**
 * @param {string} attributes
 * @param {string} name
 */
function attribute(attributes, name) {
  const entities = /** @type {const} */ ([
    ['&lt;', '<'],
    ['&gt;', '>'],
    ['&quot;', '"'],
    ['&#10;', ' '],
    ['&amp;', '&'],
  ]);
  const raw = new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? '';
  return entities.reduce((text, [entity, character]) => text.replaceAll(entity, character), raw);
}

/**
 * @param {Counts} counts
 * @param {boolean} succeeded
 * @returns {Counts}
 */
function atLeastOneFailure(counts, succeeded) {
  return succeeded || counts.failed > 0 ? counts : { ...counts, failed: 1 };
}

/**
 * The last line of `npm test`, alone.
 * @param {Counts} counts
 */
export function summaryLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped.length === 0 ? '' : `, ${skipped.length} skipped`}`;
}
