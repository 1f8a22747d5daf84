import { engineErrors } from '@backtalk/dialects';
import { describe, expect, it } from 'vitest';
import { burnsVersion } from './failures.js';

describe('a loader or an engine that fails', () => {
  it.each([
    ['refuses the adapter', engineErrors.adapterRefused({ name: 'backtalk-v1', engineStatus: 400 }), true],
    ['refuses the probes', engineErrors.invalidRequest({}), true],
    ['forgot the version', engineErrors.modelNotFound({ model: 'backtalk-v1' }), false],
    ['cannot do this at all', engineErrors.unsupported({ what: '/v1/completions', dialect: 'vllm' }), false],
    ['was asked by one that stops', engineErrors.aborted({}), false],
    ['breaks off', engineErrors.failed({ engineStatus: 500 }), false],
    ['is away', engineErrors.unreachable({ why: 'ECONNREFUSED' }), false],
  ])('%s', (_, error, burns) => {
    expect(burnsVersion(error)).toBe(burns);
  });
});
