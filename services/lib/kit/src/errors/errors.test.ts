import { describe, expect, it } from 'vitest';
import { asBacktalkError, BacktalkError, defineErrors, isAbort, isBacktalkError } from './backtalk-error.js';

const errors = defineErrors('gateway', {
  unknownModel: {
    code: 'model_not_found',
    status: 404,
    retry: 'never',
    message: (p: { model: string }) => `There is no model ${p.model}.`,
  },
  busy: { code: 'busy', retry: 'later', message: () => 'Busy.' },
});

describe('defineErrors', () => {
  it('makes errors whose code, status and retry follow from the table', () => {
    const cause = new TypeError('inside');
    const error = errors.unknownModel({ model: 'm' }, cause);
    expect(error).toBeInstanceOf(BacktalkError);
    expect(error).toMatchObject({
      code: 'model_not_found',
      status: 404,
      retry: 'never',
      detail: { model: 'm' },
      cause,
    });
    expect(error.message).toBe('There is no model m.');
  });

  it('leaves out what a row does not say', () => {
    const error = errors.busy();
    expect(error.status).toBeUndefined();
    expect('cause' in error).toBe(false);
  });

  it('lists every row in its catalogue', () => {
    expect(errors.catalogue).toEqual([
      { owner: 'gateway', code: 'model_not_found', retry: 'never', status: 404 },
      { owner: 'gateway', code: 'busy', retry: 'later' },
    ]);
  });
});

describe('isBacktalkError', () => {
  it('asks for the code where one is given', () => {
    expect(isBacktalkError(errors.busy(), 'busy')).toBe(true);
    expect(isBacktalkError(errors.busy(), 'other')).toBe(false);
    expect(isBacktalkError(new TypeError('no'))).toBe(false);
  });
});

describe('asBacktalkError', () => {
  it('leaves a BacktalkError as it is', () => {
    const error = errors.busy();
    expect(asBacktalkError(error)).toBe(error);
  });

  it('tells cancelled work and passed deadlines apart', () => {
    const abort: unknown = AbortSignal.abort().reason;
    expect(asBacktalkError(Object.assign(new TypeError(), { name: 'AbortError' })).code).toBe('cancelled');
    expect(asBacktalkError(Object.assign(new TypeError(), { name: 'TimeoutError' })).code).toBe('deadline_exceeded');
    expect(asBacktalkError(abort).code).toBe('cancelled');
    expect(isAbort(abort)).toBe(true);
  });

  it('calls a dependency that is away unreachable, to be tried again', () => {
    const error = asBacktalkError(Object.assign(new TypeError('connect'), { code: 'ECONNREFUSED' }));
    expect(error).toMatchObject({ code: 'unreachable', retry: 'later', detail: { reason: 'ECONNREFUSED' } });
  });

  it('hides foreign words from callers and keeps them as the cause', () => {
    const foreign = new TypeError('the password is swordfish');
    const error = asBacktalkError(foreign);
    expect(error).toMatchObject({ code: 'internal', retry: 'later', cause: foreign });
    expect(error.message).not.toContain('swordfish');
    expect(asBacktalkError('just a text').code).toBe('internal');
  });
});
