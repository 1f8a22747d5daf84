import { describe, expect, it } from 'vitest';
import { areLogprobsUntrue, consentOf, reasonsAgainst } from './trainability.js';

const capture = {
  promptIds: [1, 2],
  answerIds: [3],
  logprobs: [-0.5],
  text: 'a',
  reasoning: '',
  toolCalls: [],
  choices: 1,
  modelAtStart: 'p-v1',
  modelAtEnd: 'p-v1',
  finishReason: 'stop',
  usage: { promptTokens: 2, completionTokens: 1 },
};
const turn = {
  ...({ ending: 'complete', consents: true, plainSampler: true, pinned: false, hasMedia: false } as const),
  versionAsked: 'p-v1',
  versionAtStart: 'p-v1',
  versionAtEnd: 'p-v1',
  logprobsUntrue: false,
  lackedRoom: false,
};

describe('a turn of an engine that lies', () => {
  it('trains on no turn whose logprobs are not those of its weights', () => {
    expect(reasonsAgainst(capture, turn)).toEqual([]);
    expect(reasonsAgainst(capture, { ...turn, logprobsUntrue: true })).toEqual(['logprobs_untrue']);
  });

  it('trains on no turn that names other weights at the end, or others than were asked for', () => {
    expect(reasonsAgainst(capture, { ...turn, versionAtEnd: 'p-v2' })).toEqual(['version_changed']);
    expect(reasonsAgainst(capture, { ...turn, versionAsked: 'p-v2' })).toEqual(['other_version']);
    expect(reasonsAgainst(capture, { ...turn, versionAtStart: '', versionAtEnd: '' })).toEqual(['other_version']);
  });

  it('trains on no turn without ids', () => {
    expect(reasonsAgainst({ ...capture, answerIds: [] }, turn)).toContain('no_token_ids');
  });
});

describe('the logprobs of an engine', () => {
  it('logprobs are untrue only where the engine’s own scoring was asked and did not confirm them', () => {
    expect(areLogprobsUntrue(['logprobs', 'prompt_logprobs'])).toBe(true);
    expect(areLogprobsUntrue(['logprobs', 'prompt_logprobs', 'true_logprobs'])).toBe(false);
    expect(areLogprobsUntrue(['logprobs'])).toBe(false);
    expect(areLogprobsUntrue([])).toBe(false);
  });
});

const willing = { keyTrains: true, requestHeader: undefined, sessionTrains: true };

describe('consentOf', () => {
  it('consent is given when neither key nor request objects', () => {
    expect(consentOf(willing)).toEqual({ train: true, source: 'default' });
    expect(consentOf({ ...willing, requestHeader: ' ' })).toEqual({ train: true, source: 'default' });
  });

  it('consent is refused by a key, a request, or the session so far, and says by whom', () => {
    expect(consentOf({ ...willing, keyTrains: false, requestHeader: 'on' })).toEqual({ train: false, source: 'key' });
    expect(consentOf({ ...willing, requestHeader: 'Off' })).toEqual({ train: false, source: 'request' });
    expect(consentOf({ ...willing, sessionTrains: false })).toEqual({ train: false, source: 'session' });
  });

  it('a yes in so many words ends the "no" of the session so far, and not that of a key', () => {
    const said = { keyTrains: true, requestHeader: 'On', sessionTrains: false };
    expect(consentOf(said)).toEqual({ train: true, source: 'request' });
    expect(consentOf({ ...said, keyTrains: false }).train).toBe(false);
  });

  it('takes an unclear word as a no', () => {
    expect(consentOf({ ...willing, requestHeader: 'never' }).train).toBe(false);
  });
});
