import { describe, expect, it } from 'vitest';
import { gatewayErrors } from '../errors.js';
import { openAiError } from './openai-error.js';

describe('openAiError', () => {
  it('an error has the shape that clients of OpenAI read', () => {
    expect(openAiError(gatewayErrors.missingParameter({ param: 'model' }))).toEqual({
      status: 400,
      headers: {},
      body: {
        error: {
          message: "Missing required parameter: 'model'.",
          type: 'invalid_request_error',
          param: 'model',
          code: 'missing_required_parameter',
        },
      },
    });
  });

  it('says when to try again, and what is allowed', () => {
    expect(openAiError(gatewayErrors.noEngine({ version: 'v', retryAfterSeconds: 2 })).headers).toEqual({
      'Retry-After': '2',
    });
    expect(openAiError(gatewayErrors.wrongMethod({ allow: 'POST' })).headers).toEqual({ Allow: 'POST' });
  });

  it('never tells a cause', () => {
    const told = JSON.stringify(openAiError(gatewayErrors.internal({}, new RangeError('secret words'))));
    expect(told).not.toContain('secret words');
    expect(openAiError(gatewayErrors.spoolFailed()).status).toBe(500);
  });
});
