#!/usr/bin/env node
// `npm start`, `npm run reset` and the set-up of `npm test`, on a machine where nothing is installed yet:
// only Node's own modules are imported here. It looks at the machine, installs and builds what is missing,
// and hands over to the compiled supervisor.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { checkDisk, checkNode, checkPlatform, findPython, freeBytesFirstStart } from './setup/preflight.mjs';
import { askedIn, optionAsMeant, variablesAsMeant } from './setup/meant-paths.mjs';
import { build, installNodePackages } from './setup/node.mjs';
import { setUpPrometheus } from './setup/prometheus.mjs';
import { pythonPaths, setUpPython } from './setup/python.mjs';
import { SetupRefusal } from './setup/refusal.mjs';
import { say } from './setup/terminal.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const help = `Usage: npm start -- [options]        installs what is missing and starts Backtalk on this machine
       npm run reset -- [--yes]        forgets everything that was learned and said (asks first)
       node deploy/start.mjs setup [--with scoring] [--with development] [--with tinker]
                                        [--with quantization] [--with vllm]

Options of start:
  --data DIR        where state lives                       (default: .backtalk)
  --data-cap SIZE   stop learning when the folder is larger (default: 10GB)
  --port PORT       the endpoint's port; the parts use the ports above it (default: 30000)
  --host HOST       the endpoint's address; other than loopback needs keys (default: 127.0.0.1)
  --policies A,B    models of their own, which learn apart from each other (default: those of the last start; backtalk)
  --model MODEL     another base model: its folder, or its id at the Hugging Face hub, owner/name
                                                            (default: that of the last start; the laptop's)
  --engine ENGINE   what answers: builtin, vllm (setup --with vllm installs it), or the address of a vLLM or SGLang elsewhere
                                                            (default: that of the last start; builtin)
  --engine-key-file FILE  file with the key for that address, which only you can read
  --device DEVICE   where steps compute: cpu, cuda, or auto (default: that of the last start; cpu)
  --quantization HOW  of the base's linear layers: none, or nf4, four bits a number
                                                            (default: that of the last start; none)
  --teacher DIR     another model that is shown the lessons and teaches, with the base's tokens; none: no more
                                                            (default: that of the last start; the base)
  --judge-url URL   a model that judges, at any OpenAI-compatible address; none: no more
                                                            (default: that of the last start; words and tools' fields)
  --judge-model NAME      its name there                    (default: the only one that is served there)
  --judge-key-file FILE   file with the key for it, which only you can read
  --profile NAME    gpu: vLLM and training on this machine's cards, as NUM_GPUS, HF_CKPT and the rest say
                                                            (docs/gpu.md has them all; default: laptop)
  --gpus CARDS      with --dry-run: cards that are not here, such as 8x80GB
  --dry-run         with --profile gpu: say what would run on which card, and start nothing
  --json            with --dry-run: as JSON
  --compose         with --dry-run: the variables of deploy/compose.gpu.yaml, for docker compose --env-file
  --restore DIR     start a new data folder from a backup   (npx backtalk backup --to DIR makes one)
  --without-build   skip the look for changed sources
  --help            this text

Environment: BACKTALK_PYTHON names the Python to use; BACKTALK_TORCH=cuda takes the CUDA build of torch;
BACKTALK_VLLM names the vLLM of --profile gpu.`;

async function setUp(wanted, { skipBuild = false } = {}) {
  checkPlatform();
  checkNode();
  const python = findPython();
  const first = !existsSync(pythonPaths(root).model);
  checkDisk(root, first ? freeBytesFirstStart : 500_000_000);
  const logFolder = join(pythonPaths(root).venv, 'setup');
  mkdirSync(logFolder, { recursive: true });
  const context = { root, logFolder, logFile: join(logFolder, 'setup.log') };
  if (first) say('First start: installing everything that Backtalk needs into this folder (some minutes, about 3 GB).');
  const node = async () => {
    await installNodePackages(context);
    if (!skipBuild) await build(context);
  };
  // Neither needs anything of the other. What fails is said once both have ended: nothing is left half written.
  const ended = await Promise.allSettled([node(), setUpPython(python, wanted, context)]);
  const failed = ended.find(({ status }) => status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  if (wanted.includes('development')) setUpPrometheus(context);
}

function handOver(args) {
  const child = spawn(process.execPath, [join(root, 'deploy', 'dist', 'main.js'), ...args], {
    cwd: root,
    env: { ...process.env, ...variablesAsMeant(process.env, askedIn(root)) },
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => child.kill(signal === 'SIGINT' ? 'SIGINT' : 'SIGTERM'));
  child.on('close', (code) => process.exit(code ?? 1));
}

/** What the supervisor reads; the set-up takes the others itself. */
const handedOver = [
  'data',
  'data-cap',
  'port',
  'host',
  'restore',
  'policies',
  'model',
  'teacher',
  'judge-url',
  'judge-model',
  'judge-key-file',
  'engine',
  'engine-key-file',
  'device',
  'quantization',
  'profile',
  'gpus',
];
/** What `setup` installs besides. */
const extras = ['scoring', 'development', 'tinker', 'quantization', 'vllm'];
const switches = ['yes', 'dry-run', 'json', 'compose'];

const asMeant = (name, value) => optionAsMeant(name, value, askedIn(root));

/** What is built reads the file whole (the kit's `readConnectionFile`), and refuses one that is damaged. */
function wasQuantized(folder) {
  try {
    return JSON.parse(readFileSync(join(folder, 'connection.json'), 'utf8')).quantization === 'nf4';
  } catch {
    return false;
  }
}

/** It was installed once, the command line asks for it, or the data folder's last start did. */
function needsQuantization({ quantization, data }) {
  const folder = data === undefined ? join(root, '.backtalk') : asMeant('data', data);
  return quantization === 'nf4' || wasQuantized(folder) || existsSync(pythonPaths(root).stamp('quantization'));
}

function readCommandLine() {
  const text = { type: 'string' };
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ...Object.fromEntries(handedOver.map((name) => [name, text])),
      with: { type: 'string', multiple: true },
      ...Object.fromEntries(switches.map((name) => [name, { type: 'boolean' }])),
      'without-build': { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  const [verb = 'start', ...more] = positionals;
  if (!['start', 'reset', 'setup'].includes(verb) || more.length > 0)
    throw new SetupRefusal(`There is no '${positionals.join(' ')}': use start, reset or setup (--help).`);
  const unknown = values.with?.find((extra) => !extras.includes(extra));
  if (unknown !== undefined) throw new SetupRefusal(`--with '${unknown}' is not one of ${extras.join(', ')}.`);
  // The supervisor reads it once everything is installed, which is late to hear of a slip.
  const port = Number(values.port ?? 30_000);
  if (!Number.isInteger(port) || port < 1_024 || port > 65_535)
    throw new SetupRefusal(`--port '${values.port}' is not a port from 1024 to 65535.`);
  return { verb, values };
}

async function main() {
  const { verb, values } = readCommandLine();
  if (values.help === true) {
    process.stdout.write(`${help}\n`);
    return;
  }
  // What forgets needs no room and nothing new: a full disk is when it is wanted.
  const isBuilt = existsSync(join(root, 'deploy', 'dist', 'main.js'));
  const wanted = [...(values.with ?? []), ...(needsQuantization(values) ? ['quantization'] : [])];
  if (verb !== 'reset' || !isBuilt) await setUp(wanted, { skipBuild: values['without-build'] === true });
  if (verb === 'setup') return;
  const passed = handedOver.flatMap((name) =>
    values[name] === undefined ? [] : [`--${name}`, asMeant(name, values[name])],
  );
  handOver([verb, ...passed, ...switches.filter((name) => values[name] === true).map((name) => `--${name}`)]);
}

/** In one line, what the person can mend; undefined for what only we can. */
function refusalIn(error) {
  if (error instanceof SetupRefusal) return error.message;
  if (error?.code?.startsWith?.('ERR_PARSE_ARGS') !== true) return undefined;
  // Node goes on to explain how a value could begin with a dash; its first sentence names the option.
  return `${error.message.split(/[.\n]/)[0]}: npm start -- --help lists what there is.`;
}

main().catch((error) => {
  const refusal = refusalIn(error);
  say(refusal ?? `The start failed: ${error?.stack ?? error}`);
  process.exit(refusal === undefined ? 1 : 2);
});
