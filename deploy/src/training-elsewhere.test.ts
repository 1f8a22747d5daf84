import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDataFolder } from './data-folder.js';
import { adapterRank } from './engine-process.js';
import { portsFrom } from './ports.js';
import { machineProcesses } from './processes.js';
import { loadSecrets } from './secrets.js';

let root = '';

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'backtalk-elsewhere-'));
  mkdirSync(join(root, '.venv', 'lib', 'python3.11'), { recursive: true });
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

function variables(environment: Record<string, string>, device?: 'cpu' | 'cuda') {
  const data = openDataFolder(join(root, 'data'));
  const start = { data, ports: portsFrom(30000), secrets: loadSecrets(data.path), host: '127.0.0.1' };
  const given = { ...start, policies: ['backtalk'], root, model: '/m', environment };
  const { workers, services } = machineProcesses({ ...given, device });
  return Object.fromEntries([...workers, ...services].map(({ name, env }) => [name, env]));
}

const elsewhere = { BACKTALK_TRAINING_BACKEND: 'tinker', BACKTALK_TINKER_URL: 'http://there' };

describe('a service that trains elsewhere', () => {
  it('a training service has a recipe, a rank and a temperature of its own, unless the operator says others', () => {
    const given = variables(elsewhere);
    expect(given['trainer']).toMatchObject({ ...elsewhere, BACKTALK_RECIPE: 'remote' });
    expect(given['gateway']).toMatchObject({ BACKTALK_TEMPERATURE: '1' });
    expect(adapterRank({ environment: elsewhere })).toBe(32);
    const own = { BACKTALK_RECIPE: 'mine.json', BACKTALK_RECIPE_SET: 'loraRank=16', BACKTALK_TEMPERATURE: '0.7' };
    const said = variables({ ...elsewhere, ...own });
    expect(said['trainer']).toMatchObject({ BACKTALK_RECIPE: 'mine.json' });
    expect(said['gateway']).toMatchObject({ BACKTALK_TEMPERATURE: '0.7' });
    expect(adapterRank({ environment: { ...elsewhere, BACKTALK_RECIPE_SET: 'loraRank=16' } })).toBe(16);
  });

  it('a machine that trains by itself has none of a training service’s settings', () => {
    const given = variables({});
    expect(given['trainer']).not.toHaveProperty('BACKTALK_RECIPE');
    expect(given['gateway']).toMatchObject({ BACKTALK_TEMPERATURE: '0.3' });
  });

  it('a training worker that computes nothing is told neither a device nor in which numbers it computes', () => {
    expect(variables({}, 'cpu')['training-worker']).toMatchObject({ BACKTALK_DTYPE: 'float32' });
    expect(variables(elsewhere, 'cpu')['training-worker']).not.toHaveProperty('BACKTALK_DTYPE');
    const said = variables({ ...elsewhere, BACKTALK_DTYPE: 'float32' }, 'cpu')['training-worker'];
    expect(said).toMatchObject({ BACKTALK_DTYPE: 'float32' });
  });

  it('the key of a training service goes to the training worker and to no other process', () => {
    const given = variables({ ...elsewhere, BACKTALK_TINKER_KEY: 'tml-secret', TINKER_API_KEY: 'tml-secret' });
    const holders = Object.entries(given).filter(([, env]) => JSON.stringify(env).includes('tml-secret'));
    expect(holders.map(([name]) => name)).toEqual(['training-worker']);
  });
});
