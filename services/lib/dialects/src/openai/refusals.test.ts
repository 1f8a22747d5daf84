import { describe, expect, it } from 'vitest';
import { refusalOf } from './refusals.js';

const context = { dialect: 'openai', model: 'reader', path: '/v1/chat/completions' };
const refusal = (status: number, body: unknown) =>
  refusalOf({ status, headers: {}, text: JSON.stringify(body) }, context);

describe('what a host says with 400', () => {
  it.each([
    [
      'a key that Google does not know',
      [{ error: { code: 400, message: 'API key not valid. Please pass a valid API key.' } }],
    ],
    ['a key that has expired', { error: { code: 400, message: 'API key expired. Please renew the API key.' } }],
    [
      'a key that xAI does not know',
      { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: xa***y.' },
    ],
    ['an account with nothing left', { error: { message: 'Your credit balance is too low to access the API.' } }],
  ])('%s is a refused key', (_what, body) => {
    expect(refusal(400, body)).toMatchObject({ code: 'engine_unauthorized' });
  });

  it.each([
    ['OpenRouter', { error: { message: 'some/reader is not a valid model ID', code: 400 } }],
    [
      'Mistral',
      { object: 'error', message: 'Invalid model: reader', type: 'invalid_model', param: null, code: '1500' },
    ],
    ['DeepSeek', { error: { message: 'Model Not Exist', type: 'invalid_request_error' } }],
    ['others', { error: { message: 'The model `reader` does not exist', code: 'model_not_found' } }],
  ])('a model that is not there is told of as %s tell it', (_host, body) => {
    expect(refusal(400, body)).toMatchObject({ code: 'model_not_found' });
  });

  it('a prompt that speaks of keys and models is the prompt’s own refusal', () => {
    for (const message of ['Refused: "API key not valid."', 'Blocked prompt: is reader a valid model ID?'])
      expect(refusal(400, { error: { message } })).toMatchObject({ code: 'invalid_request' });
  });
});

describe('a request that is too large', () => {
  it.each([
    ['of a host', 413, { error: { message: 'Request too large for model `reader`.', code: 'rate_limit_exceeded' } }],
    ['of a proxy', 413, 'Payload Too Large'],
    [
      'by the tokens of a minute',
      429,
      { error: { message: 'Request too large for reader: Limit 6000, Requested 9000.' } },
    ],
  ])('a refusal %s (%i) for the length of a request is no limit that passes', (_whose, status, body) => {
    expect(refusal(status, body)).toMatchObject({ code: 'context_length_exceeded' });
  });

  it.each([
    ['vLLM', "This model's maximum context length is 2048 tokens. However, you requested 3000 tokens."],
    ['llama.cpp', 'the request exceeds the available context size (4096 tokens), try increasing it'],
    ['Anthropic', 'prompt is too long: 210000 tokens > 200000 maximum'],
    ['Google', 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).'],
    ['xAI', "This model's maximum prompt length is 131072 but the request contains 140000 tokens."],
    ['TGI', 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens'],
  ])('a prompt that is longer than the context is one in the words of %s', (_host, message) => {
    expect(refusal(400, { error: { message } })).toMatchObject({ code: 'context_length_exceeded' });
  });

  it('a limit of requests stays one', () => {
    const body = { error: { message: 'Rate limit reached for reader: Limit 6000, Used 5990, Requested 20.' } };
    expect(refusal(429, body)).toMatchObject({ code: 'engine_overloaded' });
  });
});
