import { defineErrors } from '@backtalk/kit';
import { describe, expect, it } from 'vitest';
import { publisherErrors } from '../errors.js';
import { undecided } from './trained-facts.js';

const thrown = defineErrors('dialects', {
  forgot: { code: 'model_not_found', status: 404, retry: 'never', message: () => 'It does not hold it.' },
  broke: { code: 'engine_failed', status: 502, retry: 'later', message: () => 'It failed.' },
  wrong: { code: 'broker_denied', status: 500, retry: 'stop', message: () => 'It may not.' },
});

describe('what stands in the way of a decision', () => {
  it.each([
    ['a refusal', thrown.forgot({}), 'model_not_found: It does not hold it.'],
    ['a failure', thrown.broke({}), 'engine_failed: It failed.'],
    ['anything else', 'a string', 'internal'],
  ])('lets the fact wait: %s', (_, error, cause) => {
    const { code, status, retry, message } = undecided(error);
    expect({ code, status, retry }).toEqual({ code: 'not_decided', status: 503, retry: 'later' });
    expect(message).toContain(cause);
  });

  it('is said as it is when the fact waits already, and when the service must end', () => {
    const away = publisherErrors.noLoader({ policy: 'backtalk' });
    expect(undecided(away)).toBe(away);
    const wrong = thrown.wrong({});
    expect(undecided(wrong)).toBe(wrong);
  });
});
