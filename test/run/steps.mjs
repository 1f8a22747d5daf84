// What `npm test` does: one row a step. A step with a report is counted by its tests, any other by itself.
// The build comes first; the others follow in the order in which they are begun, two beside each other: the longest first, so that both
// end at about the same time.
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
 * @returns {{ build: Step, others: Step[] }}
 */
export function listSteps(root, reports) {
  const command = [tool(root, 'turbo'), 'run', 'build', '--output-logs=errors-only'];
  return {
    build: { name: 'types and build', parts: ['lint', 'unit', 'loop'], command, cwd: root, minutes: 15 },
    others: [
      ...loopSteps(root, reports),
      workerStep(root, reports),
      ...unitSteps(root, reports),
      ...houseSteps(root, reports),
      ...pythonSteps(root, reports),
    ],
  };
}

/** Test files of machines with a real engine or a real training worker: each takes a core of its own. */
const withModels = [
  'agents/agents.test.ts',
  'contracts/engine.test.ts',
  'loop/cards.test.ts',
  'loop/engine-elsewhere.test.ts',
  'loop/other-model.test.ts',
  'loop/real.test.ts',
  'loop/tool-calls.test.ts',
  'loop/training-elsewhere.test.ts',
];

/** Folders of tests that need no whole machine, so that several files may run at once. */
const withoutMachine = ['chart', 'judge', 'bench', 'relations'];

/** Of the rules of this house, and of the tools beside the loop. */
const ofHouse = ['tidy', 'run', 'simulate', 'documents'];

/** Test files that have commands of their own. */
const apart = [
  // Builds images with a Docker engine: npm run test:images.
  'images/containers.test.ts',
  // Fails now and then on a busy machine (docs/limits.md): npm run test:brokers.
  'failures/broker-cluster.test.ts',
  // Installs vLLM (2.5 GB): npm run test:vllm.
  'contracts/vllm.test.ts',
];

/**
 * @param {string} root
 * @param {string} reports
 * @returns {Step[]}
 */
function loopSteps(root, reports) {
  const elsewhere = [...withoutMachine, ...ofHouse].map((folder) => `${folder}/**`);
  const others = ['tidy*', ...elsewhere, ...withModels, ...apart].flatMap((pattern) => ['--exclude', pattern]);
  /**
   * @param {string} engines
   * @param {readonly string[]} args
   * @returns {Step}
   */
  const step = (engines, args) => ({
    name: `the whole loop, with ${engines}`,
    parts: ['loop'],
    minutes: 75,
    ...vitest(root, 'test', args, join(reports, `${engines}.json`)),
  });
  return [step('models', withModels), step('stand-ins', others)];
}

/**
 * @param {string} root
 * @param {string} reports
 * @returns {Step[]}
 */
function unitSteps(root, reports) {
  const folders = withoutMachine.map((folder) => `${folder}/`);
  return [
    { name: 'unit tests', parts: ['unit'], minutes: 40, ...vitest(root, '.', [], join(reports, 'unit.json')) },
    {
      name: 'chart, judge and benchmarks',
      parts: ['unit'],
      minutes: 40,
      ...vitest(root, 'test', [...folders, '--fileParallelism', '--maxWorkers=2'], join(reports, 'chart.json')),
    },
  ];
}

/**
 * @param {string} root
 * @param {string} reports
 * @returns {Step}
 */
function workerStep(root, reports) {
  return pytestStep(root, 'worker', join(root, 'services', 'worker'), reports);
}

/**
 * The worker, and the tools in Python beside the tests of the loop.
 * @param {string} root
 * @param {string} reports
 * @returns {Step[]}
 */
function pythonSteps(root, reports) {
  const worker = join(root, 'services', 'worker');
  const tools = join(root, 'test');
  const ruff = [pythonOf(root), '-m', 'ruff'];
  /**
   * @param {string} name
   * @param {readonly string[]} command
   * @param {string} cwd
   * @param {number} minutes
   * @returns {Step}
   */
  const step = (name, command, cwd, minutes) => ({ name, parts: ['python'], command, cwd, minutes });
  return [
    step('worker and tools: types', [tool(root, 'pyright')], root, 15),
    pytestStep(root, 'tools', tools, reports),
    step('worker: style', [...ruff, 'check', '.'], worker, 2),
    step('worker: format', [...ruff, 'format', '--check', '.'], worker, 2),
    step('tools: style', [...ruff, 'check', '.'], tools, 2),
    step('tools: format', [...ruff, 'format', '--check', '.'], tools, 2),
  ];
}

/**
 * @param {string} root
 * @param {string} name
 * @param {string} cwd
 * @param {string} reports
 * @returns {Step}
 */
function pytestStep(root, name, cwd, reports) {
  const file = join(reports, `${name}.xml`);
  const command = [pythonOf(root), '-m', 'pytest', `--junitxml=${file}`];
  return { name: `${name}: tests`, parts: ['python'], command, cwd, minutes: 40, report: { kind: 'junit', file } };
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
  const rules = ofHouse.map((folder) => (folder === 'tidy' ? folder : `${folder}/`));
  return [
    { name: 'lint', parts: ['lint'], command: eslint, cwd: root, minutes: 15 },
    { name: 'house rules', parts: ['lint'], minutes: 5, ...vitest(root, 'test', rules, join(reports, 'house.json')) },
    { name: 'format', parts: ['lint'], command: [tool(root, 'prettier'), '--check', '.'], cwd: root, minutes: 15 },
    { name: 'nothing unused', parts: ['lint'], command: knip, cwd: root, minutes: 5 },
    { name: 'wire types: style', parts: ['lint'], command: [buf, 'lint'], cwd: proto, minutes: 2 },
    {
      name: 'wire types: what was sent stays readable',
      parts: ['lint'],
      command: [buf, 'breaking', '--against', 'baseline.binpb'],
      cwd: proto,
      minutes: 2,
    },
  ];
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

/** @param {string} root */
function pythonOf(root) {
  return join(root, '.venv', 'bin', 'python');
}
