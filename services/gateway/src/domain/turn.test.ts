import type { Capture } from '@backtalk/dialects';
import { describe, expect, it } from 'vitest';
import { callerOf, keylessGrant } from './caller.js';
import { samplingOf } from './sampling.js';
import { tokensUsed, turnCompleted, type Turn } from './turn.js';

const turn: Turn = {
  id: 'turn_1',
  caller: callerOf('secret', 'key', keylessGrant, undefined),
  policy: 'backtalk',
  version: 'backtalk-v2',
  pinned: false,
  session: 'session_1',
  declared: { session: '', turnType: '', done: false, group: '' },
  group: '',
  parent: undefined,
  consent: { train: true, source: 'default' },
  sampling: samplingOf({}, 0.8).parameters,
  answerKeys: [],
  questionKeys: [''],
  hasMedia: false,
  stream: true,
  shown: undefined,
};
const capture: Capture = {
  promptIds: [1, 2, 3],
  answerIds: [4, 5],
  logprobs: [-0.5, -0.25],
  text: 'Hi',
  reasoning: '',
  toolCalls: [],
  finishReason: 'stop',
  usage: { promptTokens: 3, completionTokens: 2 },
  choices: 1,
  modelAtStart: 'backtalk-v2',
  modelAtEnd: 'backtalk-v2',
};
const engine = { url: 'http://engine', baseModel: 'base-model' };

describe('turnCompleted', () => {
  it('a turn is trainable when ids, counts, consent, sampler and version are in order', () => {
    const fact = turnCompleted(turn, { capture, ending: 'complete', engine });
    expect(fact).toMatchObject({
      trainable: true,
      untrainableReasons: [],
      finishReason: 'stop',
      weightsVersion: 'backtalk-v2',
    });
    expect(fact.answerKey).toHaveLength(32);
  });

  it('keeps what the engine said about its weights, whatever was asked for', () => {
    const said = { ...capture, modelAtStart: 'base-model', modelAtEnd: 'unheard-of' };
    expect(turnCompleted(turn, { capture: said, ending: 'complete', engine })).toMatchObject({
      weightsVersion: 'backtalk-v0',
      weightsVersionAtEnd: 'unheard-of',
      trainable: false,
      untrainableReasons: ['version_changed', 'other_version'],
    });
  });

  it.each([
    [{ consent: { train: false, source: 'key' } }, {}, 'opted_out'],
    [{ sampling: samplingOf({ top_p: 0.5 }, 1).parameters }, {}, 'sampler_not_plain'],
    [{ pinned: true }, {}, 'pinned_version'],
    [{ hasMedia: true }, {}, 'has_media'],
    [{}, { answerIds: [4] }, 'count_mismatch'],
    [{}, { answerIds: [] }, 'no_token_ids'],
    [{}, { logprobs: [-0.5, -9999] }, 'logprob_not_finite'],
  ] as const)('says why a turn is not trainable: %j %j', (turnChanges, captureChanges, reason) => {
    const answer = { capture: { ...capture, ...captureChanges }, ending: 'complete', engine } as const;
    const fact = turnCompleted({ ...turn, ...turnChanges }, answer);
    expect(fact.trainable).toBe(false);
    expect(fact.untrainableReasons).toContain(reason);
  });

  it('tells a cut answer by its cut alone', () => {
    const cut = { ...capture, finishReason: '', usage: undefined };
    const unsaid = { ...cut, modelAtStart: '', modelAtEnd: '' };
    expect(turnCompleted(turn, { capture: unsaid, ending: 'engine_failed', engine: undefined })).toMatchObject({
      weightsVersion: '',
      untrainableReasons: ['engine_failed'],
    });
    expect(turnCompleted(turn, { capture: cut, ending: 'aborted', engine })).toMatchObject({
      finishReason: 'abort',
      untrainableReasons: ['aborted'],
    });
    expect(turnCompleted(turn, { capture: cut, ending: 'engine_failed', engine })).toMatchObject({
      finishReason: 'error',
      untrainableReasons: ['engine_failed'],
    });
  });
});

describe('tokensUsed', () => {
  const unsaid = { promptIds: undefined, answerIds: [], logprobs: [], usage: undefined, finishReason: '' };
  const used = (changes: Partial<Capture>, ending: 'complete' | 'aborted' | 'engine_failed') =>
    tokensUsed(turnCompleted(turn, { capture: { ...capture, ...changes }, ending, engine }), 400);

  it('counts what the engine counted, or the ids that came of an answer that was cut', () => {
    expect(used({}, 'complete')).toBe(5);
    expect(used({ usage: undefined, promptIds: [1, 2, 3, 4], finishReason: '' }, 'aborted')).toBe(6);
  });

  it('counts an answer without ids that was cut by its text, and its prompt by its own', () => {
    expect(used({ ...unsaid, text: 'x'.repeat(40), reasoning: 'y'.repeat(20) }, 'aborted')).toBe(100 + 15);
    expect(used({ ...unsaid, text: '' }, 'aborted')).toBe(100);
  });

  it('counts no prompt on which engines failed before they said how long it is', () => {
    expect(used({ ...unsaid, text: '' }, 'engine_failed')).toBe(0);
  });
});
