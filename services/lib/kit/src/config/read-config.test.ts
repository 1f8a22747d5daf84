import { describe, expect, it } from 'vitest';
import { isBacktalkError } from '../errors/backtalk-error.js';
import { describeConfig, readConfig, settings } from './read-config.js';
import { setting } from './setting.js';

const shape = {
  port: setting.integer('BACKTALK_PORT', { description: 'Where it listens.', min: 1 }),
  wait: setting.durationMs('BACKTALK_WAIT', { description: 'How long it waits.', default: '30s' }),
};

describe('readConfig', () => {
  it('gives typed, frozen values', () => {
    const config: { readonly port: number; readonly wait: number } = readConfig(shape, { BACKTALK_PORT: '80' });
    expect(config).toEqual({ port: 80, wait: 30_000 });
    expect(Object.isFrozen(config)).toBe(true);
  });

  it('complains about every bad value at once, one line each', () => {
    let message = '';
    try {
      readConfig(shape, { BACKTALK_WAIT: 'soon' });
    } catch (error) {
      if (isBacktalkError(error, 'config_invalid')) message = error.message;
    }
    const lines = message.split('\n');
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain('BACKTALK_PORT is not set');
    expect(lines[1]).toContain('BACKTALK_WAIT: "soon" is not a duration');
  });
});

it('a variable that nothing reads any more is refused by its name, and its value is not shown', () => {
  const environment = { BACKTALK_PORT: '80', BACKTALK_SERVICE_TOKEN: 'canary' };
  const refusal = /^BACKTALK_SERVICE_TOKEN is no longer read: .*BACKTALK_TRAINER_TO_TRAINING_TOKEN; unset it\.$/;
  expect(() => readConfig(shape, environment)).toThrow(refusal);
  expect(readConfig(shape, { BACKTALK_PORT: '80', BACKTALK_SERVICE_TOKEN: '' })).toMatchObject({ port: 80 });
});

describe('settings', () => {
  const asked: unknown[] = [];
  const checked = settings(shape, (config) => {
    asked.push(config);
    return config.wait < config.port ? ['BACKTALK_WAIT is below BACKTALK_PORT; give at least as much.'] : [];
  });

  it('settings are read like a plain shape where their check finds nothing', () => {
    const config: { readonly port: number; readonly wait: number } = readConfig(checked, { BACKTALK_PORT: '80' });
    expect(config).toEqual({ port: 80, wait: 30_000 });
  });

  it('settings are refused with the lines of their check', () => {
    const environment = { BACKTALK_PORT: '80', BACKTALK_WAIT: '79ms' };
    expect(() => readConfig(checked, environment)).toThrow('BACKTALK_WAIT is below BACKTALK_PORT');
  });

  it('settings are not checked together while a single value is bad', () => {
    asked.length = 0;
    expect(() => readConfig(checked, { BACKTALK_PORT: 'many' })).toThrow('BACKTALK_PORT: "many" is not a number');
    expect(asked).toEqual([]);
  });

  it('settings are described without their check', () => {
    expect(describeConfig(checked)).toBe(describeConfig(shape));
  });
});

describe('describeConfig', () => {
  it('lists every variable with its meaning and default', () => {
    expect(describeConfig(shape).split('\n')).toEqual([
      '  BACKTALK_PORT  Where it listens. (required)',
      '  BACKTALK_WAIT  How long it waits. (30s)',
    ]);
  });
});
