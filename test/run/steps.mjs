// What `npm test` does: one row a step. A step with a report is counted by its tests, any other by itself.
// The build comes first; then two lanes run beside each other, the loop and all else.
import { join } from 'node:path';

/** @typedef {'lint' | 'unit' | 'python' | 'loop'} Part */

/**
 * @typedef {object} Step
 * @property {string} name
 * @property {readonly Part[]} parts
 * @property {readonly string[]} command
 * @property {string} cwd
 * @property {number} minutes
 * @property {{ kind: 'vitest' | 'junit', file: string }} [report]
 */

/** @type {readonly Part[]} */
export const parts = ['lint', 'unit', 'python', 'loop'];

/** What every step needs: packages, the virtual environment, the model, the build. It leaves alone what is there. */
export const setUp = ['node', 'deploy/start.mjs', 'setup', '--with', 'development', '--with', 'scoring'];

/**
 * @param {string} root
 * @param {string} reports Folder for the runners' reports.
 * @returns {{ build: Step, lanes: Step[][] }} What comes first, and what runs in order in each lane after it.
 */
export function listSteps(root, reports) {
  const command = [tool(root, 'turbo'), 'run', 'build', '--output-logs=errors-only'];
  return {
    build: { name: 'types and build', parts: ['lint', 'unit', 'loop'], command, cwd: root, minutes: 15 },
    lanes: [
      [
        ...houseSteps(root, reports),
        ...unitSteps(root, reports),
        chartStep(root, reports),
        ...pythonSteps(root, reports),
      ],
      [loopStep(root, reports)],
    ],
  };
}

/**
 * @param {string} root
 * @param {string} reports
 * @returns {Step[]}
 */
function houseSteps(root, reports) {
  const proto = join(root, 'proto');
  const buf = tool(root, 'buf');
  const knip = [tool(root, 'knip'), '--no-progress'];
  const eslint = [tool(root, 'eslint'), '.', '--max-warnings', '0'];
  return [
    { name: 'format', parts: ['lint'], command: [tool(root, 'prettier'), '--check', '.'], cwd: root, minutes: 15 },
    { name: 'lint', parts: ['lint'], command: eslint, cwd: root, minutes: 15 },
    { name: 'nothing unused', parts: ['lint'], command: knip, cwd: root, minutes: 5 },
    { name: 'wire types: style', parts: ['lint'], command: [buf, 'lint'], cwd: proto, minutes: 2 },
    {
      name: 'wire types: what was sent stays readable',
      parts: ['lint'],
      command: [buf, 'breaking', '--against', 'baseline.binpb'],
      cwd: proto,
      minutes: 2,
    },
    {
      name: 'house rules',
      parts: ['lint'],
      minutes: 5,
      ...vitest(root, 'test', ['tidy', 'run/', 'simulate/', 'documents/'], join(reports, 'house.json')),
    },
  ];
}

/**
 * @param {string} root
 * @param {string} reports
 * @returns {Step[]}
 */
function unitSteps(root, reports) {
  return [{ name: 'unit tests', parts: ['unit'], minutes: 40, ...vitest(root, '.', [], join(reports, 'unit.json')) }];
}

/** Folders of tests that need no whole machine, so that several files may run at once. */
const withoutMachine = ['chart', 'judge', 'bench', 'relations'];

/**
 * @param {string} root
 * @param {string} reports
 * @returns {Step}
 */
function chartStep(root, reports) {
  const folders = withoutMachine.map((folder) => `${folder}/`);
  return {
    name: 'chart, judge and benchmarks',
    parts: ['unit'],
    minutes: 40,
    ...vitest(root, 'test', [...folders, '--fileParallelism', '--maxWorkers=2'], join(reports, 'chart.json')),
  };
}

/**
 * The worker, and the tools in Python beside the tests of the loop.
 * @param {string} root
 * @param {string} reports
 * @returns {Step[]}
 */
function pythonSteps(root, reports) {
  const python = join(root, '.venv', 'bin', 'python');
  return [
    { name: 'worker', cwd: join(root, 'services', 'worker') },
    { name: 'tools', cwd: join(root, 'test') },
  ].flatMap(({ name, cwd }) => {
    const file = join(reports, `${name}.xml`);
    /**
     * @param {string} what
     * @param {readonly string[]} command
     * @param {number} minutes
     * @returns {Step}
     */
    const step = (what, command, minutes) => ({ name: `${name}: ${what}`, parts: ['python'], command, cwd, minutes });
    const pytest = [python, '-m', 'pytest', `--junitxml=${file}`];
    return [
      step('style', [python, '-m', 'ruff', 'check', '.'], 2),
      step('format', [python, '-m', 'ruff', 'format', '--check', '.'], 2),
      step('types', [tool(root, 'pyright')], 15),
      { ...step('tests', pytest, 40), report: { kind: 'junit', file } },
    ];
  });
}

/**
 * @param {string} root
 * @param {string} reports
 * @returns {Step}
 */
function loopStep(root, reports) {
  const apart = [
    // Builds images with a Docker engine: npm run test:images.
    'images/containers.test.ts',
    // Fails now and then on a busy machine (docs/limits.md): npm run test:brokers.
    'failures/broker-cluster.test.ts',
    // Installs vLLM (2.5 GB): npm run test:vllm.
    'contracts/vllm.test.ts',
  ];
  const elsewhere = withoutMachine.map((folder) => `${folder}/**`);
  const others = ['tidy*', 'tidy/**', 'run/**', 'simulate/**', 'documents/**', ...elsewhere, ...apart].flatMap(
    (pattern) => ['--exclude', pattern],
  );
  return {
    name: 'the whole loop',
    parts: ['loop'],
    minutes: 75,
    ...vitest(root, 'test', others, join(reports, 'loop.json')),
  };
}

/**
 * @param {string} root
 * @param {string} folder
 * @param {readonly string[]} args
 * @param {string} file
 * @returns {Pick<Step, 'command' | 'cwd' | 'report'>}
 */
function vitest(root, folder, args, file) {
  const reporters = ['--reporter=dot', '--reporter=json', `--outputFile.json=${file}`];
  const command = [tool(root, 'vitest'), 'run', ...args, ...reporters];
  return { command, cwd: join(root, folder), report: { kind: 'vitest', file } };
}

/**
 * @param {string} root
 * @param {string} name
 */
function tool(root, name) {
  return join(root, 'node_modules', '.bin', name);
}
