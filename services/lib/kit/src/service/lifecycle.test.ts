import { describe, expect, it } from 'vitest';
import { isBacktalkError } from '../errors/backtalk-error.js';
import { FakeClock } from '../testing/fake-clock.js';
import { silentLogger } from '../testing/silent-logger.js';
import { Lifecycle } from './lifecycle.js';

function setUp() {
  const clock = new FakeClock();
  const stopped: string[] = [];
  const lifecycle = new Lifecycle(silentLogger, clock);
  const add = (name: string, stop: () => Promise<void> | void = () => undefined): void => {
    lifecycle.add(name, () => {
      stopped.push(name);
      return stop();
    });
  };
  return { clock, stopped, lifecycle, add };
}

describe('Lifecycle', () => {
  it('stops in reverse order of the start', async () => {
    const { lifecycle, stopped, add } = setUp();
    ['broker', 'consumer', 'server'].forEach((name) => {
      add(name);
    });
    await lifecycle.stopAll(1000);
    expect(stopped).toEqual(['server', 'consumer', 'broker']);
  });

  it('stops the others when one fails, and names it at the end', async () => {
    const { lifecycle, stopped, add } = setUp();
    add('broker');
    add('consumer', () => Promise.reject(new TypeError('no')));
    add('server');
    const error: unknown = await lifecycle.stopAll(1000).catch((thrown: unknown) => thrown);
    expect(stopped).toEqual(['server', 'consumer', 'broker']);
    expect(isBacktalkError(error, 'stop_incomplete') && error.detail).toEqual({ parts: ['consumer'] });
  });

  it('asks every part to stop even when one hangs past the deadline', async () => {
    const { clock, lifecycle, stopped, add } = setUp();
    add('broker');
    add('consumer', () => new Promise<void>(() => undefined));
    const ended = lifecycle.stopAll(1000).catch((thrown: unknown) => thrown);
    await clock.advance(1000);
    const error = await ended;
    expect(stopped).toEqual(['consumer', 'broker']);
    expect(isBacktalkError(error, 'stop_incomplete') && error.message).toContain('consumer');
    expect(clock.waiting).toBe(0);
  });

  it('stops everything once only', async () => {
    const { lifecycle, stopped, add } = setUp();
    add('broker');
    await lifecycle.stopAll(1000);
    await lifecycle.stopAll(1000);
    expect(stopped).toEqual(['broker']);
  });
});
