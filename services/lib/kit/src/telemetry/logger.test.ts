import { describe, expect, it } from 'vitest';
import type { LogLevel } from '../config/base-settings.js';
import { defineErrors } from '../errors/backtalk-error.js';
import { FakeClock } from '../testing/fake-clock.js';
import { createLogger, Said } from './logger.js';

function capture(level: LogLevel) {
  const lines: Record<string, unknown>[] = [];
  const destination = {
    write: (line: string) => {
      lines.push(JSON.parse(line) as Record<string, unknown>);
    },
  };
  return { lines, logger: createLogger({ service: 'gateway', level, destination }) };
}

describe('createLogger', () => {
  it('writes one JSON line with service, level, event and fields', () => {
    const { lines, logger } = capture('info');
    logger.info('turn_stored', { sequence: 7 });
    expect(lines).toEqual([
      expect.objectContaining({ service: 'gateway', level: 'info', event: 'turn_stored', sequence: 7 }),
    ]);
  });

  it('leaves out lines below its level', () => {
    const { lines, logger } = capture('warn');
    logger.info('quiet');
    logger.debug('quieter');
    logger.error('loud');
    expect(lines.map((line) => line['event'])).toEqual(['loud']);
  });

  it('shows an error with its code and its real cause, not its detail', () => {
    const errors = defineErrors('test', {
      busy: { code: 'busy', retry: 'later', message: (_p: { secret: string }) => 'Busy.' },
    });
    const { lines, logger } = capture('info');
    logger.warn('failed', { error: errors.busy({ secret: 'swordfish' }, new TypeError('inside')) });
    expect(lines[0]?.['error']).toMatchObject({ code: 'busy', retry: 'later', cause: { message: 'inside' } });
    expect(JSON.stringify(lines)).not.toContain('swordfish');
  });
});

describe('what is said again and again', () => {
  it.each([60_000, -3_600_000])('a warning is due once a minute, also where the clock is set back: %d', async (ms) => {
    const clock = new FakeClock();
    const said = new Said(clock);
    expect([said.isDue('a'), said.isDue('a')]).toEqual([true, false]);
    await clock.advance(ms);
    expect(said.isDue('a')).toBe(true);
  });
});
