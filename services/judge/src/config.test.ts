import { readConfig } from '@backtalk/kit';
import { expect, it } from 'vitest';
import { judgeSettings } from './config.js';

const environment = (backend?: string) => ({
  BACKTALK_HEALTH_ADDRESS: '127.0.0.1:0',
  ...(backend === undefined ? {} : { BACKTALK_JUDGE_BACKEND: backend }),
});

it('words judge where nothing else is said, and a backend that is gone is refused with those that there are', () => {
  expect(readConfig(judgeSettings, environment()).backend).toBe('words');
  expect(() => readConfig(judgeSettings, environment('scored'))).toThrow(
    'BACKTALK_JUDGE_BACKEND: "scored" is none of the known values; give one of words, free, rules.',
  );
});
