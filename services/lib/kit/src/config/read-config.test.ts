import { describe, expect, it } from 'vitest';
import { isBacktalkError } from '../errors/backtalk-error.js';
import { describeConfig, readConfig } from './read-config.js';
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

describe('describeConfig', () => {
  it('lists every variable with its meaning and default', () => {
    expect(describeConfig(shape).split('\n')).toEqual([
      '  BACKTALK_PORT  Where it listens. (required)',
      '  BACKTALK_WAIT  How long it waits. (30s)',
    ]);
  });
});
