import { describe, expect, it } from 'vitest';
import { diagnose, type Loop, type Seen } from './diagnosis.js';
import { Metrics } from './prometheus.js';

const well: Loop = {
  parts: [{ part: 'judge', url: 'http://judge', ready: true, why: '' }],
  policies: [
    {
      policy: 'backtalk',
      stable: 'backtalk-v3',
      previous: '',
      paused: false,
      storageFull: false,
      held: '',
      withoutVersion: '',
      tooLong: 0,
    },
  ],
  facts: { turnContinued: 60, turnJudged: 60, weightsTrained: 3 },
  deadLetters: 0,
  engines: [{ engine: 'http://engine', ready: true, reason: '' }],
};

const healthy: Seen = {
  where: '/data',
  endpoint: 'http://127.0.0.1:30000/v1',
  loop: well,
  stranger: 'none',
  disk: { usedBytes: 1e9, capBytes: 10e9, freeBytes: 50e9 },
  base: { name: 'own', gone: '', changed: '', served: ['own'] },
  engineStatus: 200,
  engineAt: '',
  keys: { file: '/data/keys.json', problem: '' },
  openAt: '',
  metrics: new Metrics('backtalk_gateway_requests_total{route="chat_completions",status="200"} 60\n'),
  clocks: { judge: -1 },
};

const loop = (more: Partial<Loop>): Partial<Seen> => ({ loop: { ...well, ...more } });
const policy = (more: object) => loop({ policies: well.policies.map((one) => ({ ...one, ...more })) });
const metrics = (...lines: readonly string[]) => new Metrics(lines.join('\n'));
const asked = (status: number, count: number) =>
  `backtalk_gateway_requests_total{route="chat_completions",status="${String(status)}"} ${String(count)}`;
const judgedOnly = { turnContinued: 43, turnJudged: 43, weightsTrained: 0 };

describe('what is found at an installation', () => {
  it('a healthy installation has nothing to be found', () => {
    expect(diagnose(healthy)).toEqual([]);
  });

  it.each<[string, Partial<Seen>, string, string]>([
    ['that does not run', { loop: undefined }, 'not_running', 'Backtalk does not run (/data)'],
    [
      'whose port another program has',
      { loop: undefined, stranger: 'other' },
      'port_taken',
      'another program answers at http://127.0.0.1:30000/v1',
    ],
    [
      'whose broker is away',
      {
        loop: undefined,
        stranger: 'gateway',
        engineStatus: 401,
        base: { name: 'own', gone: '', changed: '', served: ['other'] },
      },
      'broker_away',
      'the gateway answers at http://127.0.0.1:30000/v1, and its broker does not: read logs/nats.log',
    ],
    [
      'of a cluster whose broker is away',
      { loop: undefined, stranger: 'gateway', disk: undefined },
      'broker_away',
      'its broker does not: look at the pods of NATS',
    ],
    [
      'with a part that is down',
      loop({ parts: [{ part: 'judge', url: '', ready: false, why: 'does not answer' }] }),
      'part_down',
      'judge is not ready: does not answer',
    ],
    [
      'of a cluster with a part that is down',
      { ...loop({ parts: [{ part: 'gateway gw-1', url: '', ready: false, why: 'no broker' }] }), disk: undefined },
      'part_down',
      'gateway gw-1 is not ready: no broker: look whether its pod or container runs',
    ],
    [
      'of a cluster where nothing answers',
      { loop: undefined, disk: undefined, where: 'nats://broker:4222' },
      'not_running',
      'no broker answers at nats://broker:4222, and no gateway at http://127.0.0.1:30000/v1: look at the pods, at port forwards',
    ],
    [
      'whose model is gone',
      { base: { name: 'own', gone: '/models/own', changed: '', served: [] } },
      'base_model',
      "the base model's folder /models/own is gone",
    ],
    [
      'whose model’s weights have changed',
      { base: { name: 'own', gone: '', changed: '/models/own', served: ['own'] } },
      'base_model',
      'the weights of own in /models/own are not those that was learned on',
    ],
    [
      'that serves another model',
      { base: { name: 'own', gone: '', changed: '', served: ['other'] } },
      'base_model',
      'what was learned belongs to own, and the engine serves other',
    ],
    [
      'that is nearly at its cap',
      { disk: { usedBytes: 8.5e9, capBytes: 10e9, freeBytes: 50e9 } },
      'data_cap',
      'the data folder holds 85 % of its cap of 10.0 GB',
    ],
    ['at its cap', policy({ storageFull: true }), 'data_cap', 'the data folder has reached its cap'],
    [
      'with a full disk',
      { disk: { usedBytes: 1, capBytes: 10e9, freeBytes: 0.4e9 } },
      'disk_full',
      '0.4 GB of the disk are free',
    ],
    [
      'whose engine elsewhere is gone',
      { engineStatus: 0, engineAt: 'http://far/v1' },
      'engine_away',
      'the engine at http://far/v1 (--engine) does not answer',
    ],
    [
      'whose engine elsewhere refuses its key',
      { engineStatus: 401, engineAt: 'http://far/v1' },
      'engine_key',
      'the engine refuses the key that it is given: name the file with its key: --engine-key-file FILE',
    ],
    ['whose engine refuses its key', { engineStatus: 401 }, 'engine_key', 'the engine refuses the key'],
    [
      'whose loader is refused',
      loop({ engines: [{ engine: 'http://e', ready: false, reason: 'The engine refuses the key it was given.' }] }),
      'engine_key',
      'the engine refuses the key that it is given (http://e)',
    ],
    [
      'with broken keys',
      { keys: { file: '/data/keys.json', problem: 'cannot be read as keys' } },
      'keys_file',
      '/data/keys.json cannot be read as keys',
    ],
    [
      'that is open',
      { openAt: 'http://10.0.0.1:30000/v1' },
      'open_endpoint',
      'http://10.0.0.1:30000/v1 answers without a key',
    ],
    [
      'whose training is held',
      policy({ held: 'v1, v2, v3 were burned in a row, the last one for drift' }),
      'held',
      'training of backtalk rests: v1, v2, v3 were burned in a row, the last one for drift',
    ],
    ['that is paused', policy({ paused: true }), 'paused', 'learning of backtalk is paused'],
    [
      'without any judgement',
      loop({ facts: { turnContinued: 9, turnJudged: 0 } }),
      'never_judged',
      '9 turns were continued, and none was ever judged',
    ],
    [
      'whose votes are invalid',
      {
        metrics: metrics(
          'backtalk_judge_votes_cast_total{result="unparsable"} 7',
          'backtalk_judge_votes_cast_total{result="timeout"} 2',
        ),
      },
      'invalid_votes',
      'none of 9 votes of the judge was valid (unparsable 7, timeout 2)',
    ],
    [
      'that learned nothing',
      {
        ...loop({ facts: judgedOnly }),
        metrics: metrics(
          'backtalk_trainer_samples_dropped_total{policy="a",reason="too_long"} 30',
          'backtalk_trainer_samples_dropped_total{policy="b",reason="too_long"} 2',
          'backtalk_gateway_untrainable_total{reason="opted_out"} 11',
        ),
      },
      'nothing_learned',
      '43 turns were judged, and nothing was learned (too_long 32, opted_out 11)',
    ],
    [
      'whose prompts are too long',
      {
        metrics: metrics(
          asked(200, 40),
          asked(400, 10),
          'backtalk_gateway_refused_total{code="context_length_exceeded"} 10',
        ),
      },
      'context_short',
      "10 of 50 requests were longer than the model's context",
    ],
    [
      'whose training service is away',
      { metrics: metrics('backtalk_training_steps_total{outcome="service_unavailable"} 3') },
      'steps_not_taken',
      'the training worker did not take 3 steps (service_unavailable): look at BACKTALK_TINKER_URL',
    ],
    [
      'whose training service refuses what it is asked for',
      { metrics: metrics('backtalk_training_steps_total{outcome="service_refused"} 4') },
      'steps_not_taken',
      'the training worker did not take 4 steps (service_refused): set in the recipe, or as BACKTALK_TINKER_MODEL,',
    ],
    ['with a clock that is off', { clocks: { gateway: 41 } }, 'clock_skew', 'the clock of gateway differs by 41 s'],
    ['with dead letters', loop({ deadLetters: 2 }), 'dead_letters', '2 facts could not be handled'],
  ])('an installation %s gets one finding, in one line, with what to do', (_, seen, code, words) => {
    const findings = diagnose({ ...healthy, ...seen });
    expect(findings.map((finding) => finding.code)).toEqual([code]);
    const line = `${findings[0]?.what ?? ''}: ${findings[0]?.mend ?? ''}`;
    expect(line).toContain(words);
    expect(line).toMatch(/^[^\n]+: \S[^\n]+$/);
  });

  it.each<[string, Partial<Seen>]>([
    [
      'what was continued may not be learned from',
      {
        ...loop({ facts: { turnContinued: 9, turnJudged: 0 } }),
        metrics: metrics('backtalk_gateway_untrainable_total{reason="opted_out"} 5'),
      },
    ],
    [
      'few requests of another API are too long',
      {
        metrics: metrics(
          'backtalk_gateway_requests_total{route="messages",status="200"} 9000',
          'backtalk_gateway_refused_total{code="context_length_exceeded"} 10',
        ),
      },
    ],
    [
      'few steps were not taken',
      { metrics: metrics('backtalk_training_steps_total{outcome="service_unavailable"} 2') },
    ],
    ['few votes are invalid', { metrics: metrics('backtalk_judge_votes_cast_total{result="timeout"} 4') }],
    [
      'some votes are valid',
      {
        metrics: metrics(
          'backtalk_judge_votes_cast_total{result="timeout"} 9',
          'backtalk_judge_votes_cast_total{result="-1"} 1',
        ),
      },
    ],
    [
      'few prompts are too long',
      {
        metrics: metrics(
          asked(200, 95),
          asked(400, 5),
          'backtalk_gateway_refused_total{code="context_length_exceeded"} 5',
        ),
      },
    ],
    ['turns have just begun', loop({ facts: { turnContinued: 4, turnJudged: 0 } })],
    ['the first batch is not full', loop({ facts: { turnContinued: 19, turnJudged: 19, weightsTrained: 0 } })],
  ])('an installation where %s has nothing to be found', (_, seen) => {
    expect(diagnose({ ...healthy, ...seen })).toEqual([]);
  });

  it.each([
    ['too_long', 'sampleTokensMax'],
    ['template_mismatch', 'template'],
    ['opted_out', 'X-Backtalk-Train: off'],
    ['never_heard_of', 'npx backtalk batches'],
  ])('what to do about turns that taught nothing follows from the commonest reason, %s', (reason, words) => {
    const counted = metrics(`backtalk_trainer_turns_settled_total{policy="a",reason="${reason}"} 40`);
    const [finding] = diagnose({ ...healthy, ...loop({ facts: judgedOnly }), metrics: counted });
    expect(finding?.mend).toContain(words);
  });

  it('learning that rests is not taken for learning that fails', () => {
    const seen = policy({ paused: true });
    const findings = diagnose({ ...healthy, loop: { ...well, ...seen.loop, facts: judgedOnly } });
    expect(findings.map(({ code }) => code)).toEqual(['paused']);
  });
});
