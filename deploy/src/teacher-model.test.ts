import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lastTeacher, writeConnection } from './connection.js';
import { openDataFolder } from './data-folder.js';
import { readOptions } from './options.js';
import { portsFrom } from './ports.js';
import { machineProcesses } from './processes.js';
import { loadSecrets } from './secrets.js';
import { teacherModel } from './teacher-model.js';

let root = '';
let model = '';

function writeConfig(architecture: string): void {
  const sizes = { hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2, num_attention_heads: 4 };
  const config = { architectures: [architecture], max_position_embeddings: 8192, ...sizes };
  writeFileSync(join(model, 'config.json'), JSON.stringify(config));
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'backtalk-teacher-'));
  model = join(root, 'model');
  mkdirSync(model);
  writeConfig('LlamaForCausalLM');
  writeFileSync(join(model, 'tokenizer.json'), '{}');
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

describe('the model that teaches', () => {
  it('the teacher is the one that this start names, or the last one did, until a start says none', () => {
    expect(teacherModel(model, undefined, {})).toBe(model);
    expect(teacherModel(undefined, model, {})).toBe(model);
    expect(teacherModel('none', model, {})).toBeUndefined();
    expect(teacherModel(undefined, undefined, {})).toBeUndefined();
  });

  it('a teacher without one of its files is refused in one line', () => {
    rmSync(join(model, 'tokenizer.json'));
    expect(() => teacherModel(model, undefined, {})).toThrow(
      `--teacher ${model} cannot teach: it has no tokenizer.json.`,
    );
  });

  it('a teacher that training does not follow is refused in one line', () => {
    writeConfig('GraniteForCausalLM');
    expect(() => teacherModel(model, undefined, {})).toThrow(
      /cannot teach: .* its architecture is GraniteForCausalLM\.$/,
    );
    writeFileSync(join(model, 'config.json'), '{');
    expect(() => teacherModel(model, undefined, {})).toThrow('cannot teach: its config.json cannot be read.');
  });

  it('a recipe that asks for another model is refused where none is named', () => {
    const asks = { BACKTALK_RECIPE_SET: 'effective=4, teacher = other' };
    expect(() => teacherModel(undefined, undefined, asks)).toThrow('npm start -- --teacher DIR names it');
    expect(() => teacherModel('none', model, asks)).toThrow('npm start -- --teacher DIR names it');
    expect(teacherModel(undefined, undefined, { ...asks, BACKTALK_TEACHER_MODEL_DIR: model })).toBeUndefined();
    expect(teacherModel(undefined, undefined, { BACKTALK_RECIPE_SET: 'teacher=ema' })).toBeUndefined();
  });

  it('--teacher is a folder beside the installation, and none is no folder', () => {
    expect(readOptions(['--teacher', 'model'], root).teacher).toBe(model);
    expect(readOptions(['--teacher', 'none'], root).teacher).toBe('none');
    expect(readOptions([], root).teacher).toBeUndefined();
  });

  it('the teacher is given to the training worker alone, and the recipe asks for it unless the operator says who teaches', () => {
    mkdirSync(join(root, '.venv', 'lib', 'python3.11'), { recursive: true });
    const data = openDataFolder(join(root, 'data'));
    const secrets = loadSecrets(data.path);
    const policies = ['backtalk'];
    const start = { data, ports: portsFrom(30000), secrets, host: '127.0.0.1', policies };
    const envOf = (name: string, environment: Record<string, string>, teacher?: string) => {
      const { workers, services } = machineProcesses({ ...start, root, model: '/m', environment, teacher });
      return [...workers, ...services].find((spec) => spec.name === name)?.env ?? {};
    };
    expect(envOf('training-worker', {}, model)['BACKTALK_TEACHER_MODEL_DIR']).toBe(model);
    expect(envOf('training-worker', {})).not.toHaveProperty('BACKTALK_TEACHER_MODEL_DIR');
    expect(envOf('trainer', {}, model)['BACKTALK_RECIPE_SET']).toBe('teacher=other');
    expect(envOf('trainer', {})).not.toHaveProperty('BACKTALK_RECIPE_SET');
    const own = { BACKTALK_RECIPE_SET: 'teacher=base' };
    expect(envOf('trainer', own, model)['BACKTALK_RECIPE_SET']).toBe('teacher=other,teacher=base');
    writeConnection({ ...start, teacher: model });
    expect(lastTeacher(data)).toBe(model);
    writeConnection(start);
    expect(lastTeacher(data)).toBeUndefined();
  });
});
