import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inheritedEnvironment } from '@backtalk/kit';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { readOptions } from './options.js';

const startFile = join(dirname(dirname(fileURLToPath(import.meta.url))), 'start.mjs');

function run(...args: string[]) {
  return spawnSync(process.execPath, [startFile, ...args], { encoding: 'utf8', timeout: 20_000 });
}

const help = run('--help').stdout;
const withValue = [...help.matchAll(/^ {2}(--[a-z-]+) [A-Z]+ /gm)].map(([, option]) => option ?? '');
const values: Readonly<Record<string, string>> = {
  '--data-cap': '1GB',
  '--port': '31000',
  '--judge-url': 'http://judge/v1',
  '--engine': 'vllm',
  '--device': 'auto',
  '--quantization': 'nf4',
  '--profile': 'gpu',
  '--gpus': '8x80GB',
};

describe('the start command', () => {
  it('names options with values in its help', () => {
    expect(withValue).toEqual(expect.arrayContaining(['--data', '--port', '--restore']));
  });

  it.each(withValue)('takes %s, and so does the supervisor it hands over to', (option) => {
    const value = values[option] ?? 'somewhere';
    expect(run(option, value, '--help')).toMatchObject({ status: 0, stderr: '' });
    const beside = option === '--gpus' ? ['--profile', 'gpu'] : [];
    expect(() => readOptions([option, value, ...beside], '/house')).not.toThrow();
  });

  it.each([
    [['--bogus'], "Unknown option '--bogus': npm start -- --help lists what there is.\n"],
    [['--port'], "Option '--port <value>' argument missing: npm start -- --help lists what there is.\n"],
    [['begin'], "There is no 'begin': use start, reset or setup (--help).\n"],
    [['setup', '--with', 'vlm'], "--with 'vlm' is not one of scoring, development, tinker, quantization, vllm.\n"],
    [['--port', '80'], "--port '80' is not a port from 1024 to 65535.\n"],
    [['--port', 'web'], "--port 'web' is not a port from 1024 to 65535.\n"],
    [['start', 'over'], "There is no 'start over': use start, reset or setup (--help).\n"],
  ])('refuses %j in one line, before anything is installed', (args, line) => {
    expect(run(...args)).toMatchObject({ status: 2, stdout: '', stderr: line });
  });

  it('takes a path from where it was typed, and resets without installing anything', () => {
    const elsewhere = new TemporaryDirectory('start');
    const env = { PATH: inheritedEnvironment()['PATH'] ?? '' };
    const reset = [startFile, 'reset', '--data', 'state'];
    const { stdout } = spawnSync(process.execPath, reset, {
      cwd: elsewhere.path,
      env,
      encoding: 'utf8',
      timeout: 20_000,
    });
    expect(stdout).toBe(`Nothing to forget: ${elsewhere.join('state')} does not exist.\n`);
    elsewhere.remove();
  });

  it('launch variables that name a folder are taken from where they were typed, and a model may be one of the hub’s', () => {
    const elsewhere = new TemporaryDirectory('start');
    mkdirSync(elsewhere.join('models', 'base'), { recursive: true });
    const said = { HF_CKPT: 'models/base', PRM_MODEL_PATH: 'Qwen/Qwen3-4B', SAVE_CKPT: ' saved', NUM_GPUS: '2' };
    const meant = new URL('../setup/meant-paths.mjs', import.meta.url).href;
    const script = `import { variablesAsMeant } from ${JSON.stringify(meant)};
      console.log(JSON.stringify(variablesAsMeant(${JSON.stringify(said)}, process.cwd())));`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
      cwd: elsewhere.path,
      encoding: 'utf8',
    });
    expect(JSON.parse(stdout)).toEqual({
      HF_CKPT: elsewhere.join('models', 'base'),
      PRM_MODEL_PATH: 'Qwen/Qwen3-4B',
      SAVE_CKPT: elsewhere.join('saved'),
    });
    elsewhere.remove();
  });
});
