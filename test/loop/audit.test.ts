import { newTrace, type FactMessage, type FactName, type StoredFact } from '@backtalk/kit';
import {
  BatchClosed,
  TurnCompleted,
  TurnContinued,
  TurnJudged,
  TurnOpened,
  WeightsStaged,
  WeightsStaged_Stage,
  WeightsTrained,
} from '@backtalk/proto/facts';
import { Routes } from '@backtalk/proto/weights';
import { describe, expect, it } from 'vitest';
import { audit, type Evidence } from './audit.js';
import type { FactLog } from './fact-log.js';
import { hashOf, type LedgerRow } from './ledger.js';

function fact<N extends FactName>(name: N, sequence: number, message: FactMessage<N>) {
  return { name, sequence, message, timeMs: sequence, headers: {}, trace: newTrace(), subject: '' } as StoredFact<N>;
}

const row = (turn: string, text: string, more: Partial<LedgerRow> = {}): LedgerRow => ({
  client: 'client-0',
  turn,
  weights: 'backtalk-v0',
  status: 200,
  finished: true,
  error: '',
  continues: '',
  optedOut: false,
  bytes: Buffer.byteLength(text),
  hash: hashOf(text),
  ...more,
});

const completed = (turn: string, text: string, more: Partial<TurnCompleted> = {}) =>
  TurnCompleted.fromPartial({
    turn,
    text,
    weightsVersion: 'backtalk-v0',
    weightsVersionAtEnd: 'backtalk-v0',
    trainable: true,
    finishReason: 'stop',
    ...more,
  });

/** Two turns, the second of which continues the first; the first is judged, trained on, and its version serves. */
function soundLog(): FactLog {
  const version = 'backtalk-v1';
  return {
    opened: [
      fact('turnOpened', 1, TurnOpened.fromPartial({ turn: 'a' })),
      fact('turnOpened', 3, TurnOpened.fromPartial({ turn: 'b' })),
    ],
    completed: [fact('turnCompleted', 2, completed('a', 'Grüße')), fact('turnCompleted', 4, completed('b', 'short'))],
    continued: [fact('turnContinued', 5, TurnContinued.fromPartial({ turn: 'a', continuedBy: 'b' }))],
    judged: [fact('turnJudged', 6, TurnJudged.fromPartial({ turn: 'a', verdict: -1 }))],
    batches: [
      fact(
        'batchClosed',
        1,
        BatchClosed.fromPartial({ number: 1, version, parent: 'backtalk-v0', samples: [{ turn: 'a' }] }),
      ),
    ],
    trained: [fact('weightsTrained', 2, WeightsTrained.fromPartial({ version, batch: 1, parent: 'backtalk-v0' }))],
    staged: [fact('weightsStaged', 3, WeightsStaged.fromPartial({ version, stage: WeightsStaged_Stage.STAGE_STABLE }))],
    routes: Routes.fromPartial({ fence: 3, stable: version, routes: [{ version, share: 1 }] }),
    deadLetters: 0,
  };
}

function sound(): Evidence {
  return { ledger: [row('a', 'Grüße'), row('b', 'short', { continues: 'a' })], log: soundLog() };
}

function doctored(change: Partial<FactLog>, ledger: readonly LedgerRow[] = sound().ledger): Evidence {
  return { ledger, log: { ...soundLog(), ...change } };
}

describe('the auditor', () => {
  it('finds nothing where all is well', () => {
    expect(audit(sound())).toEqual([]);
  });

  it('accepts that a guard skipped a step, and no version came of it', () => {
    const { batches, staged } = soundLog();
    const skipped = (why: string) => {
      const next = { number: 2, version: 'backtalk-v2', parent: 'backtalk-v1', samples: [{ turn: 'b' }] };
      const end = BatchClosed.fromPartial({ number: 3, why, detail: 'nothing_trained: 0', settled: [{ turn: 'b' }] });
      const verdict = TurnJudged.fromPartial({ turn: 'b', verdict: 1 });
      const judged = [...soundLog().judged, fact('turnJudged', 7, verdict)];
      const facts = [fact('batchClosed', 8, BatchClosed.fromPartial(next)), fact('batchClosed', 9, end)];
      return doctored({ judged, batches: [...batches, ...facts], staged });
    };
    expect(audit(skipped('step_skipped'))).toEqual([]);
    expect(audit(skipped('step_failed')).join()).toContain('batch 2 was closed and backtalk-v2 was never trained');
  });

  it('accepts an answer whose last bytes never reached the client', () => {
    const cut = row('a', 'Gr', { finished: false });
    expect(audit(doctored({}, [cut, row('b', 'short', { continues: 'a' })]))).toEqual([]);
  });

  it('accepts what answers after a rollback, and that a version is burned which never answered', () => {
    const { staged } = soundLog();
    const say = (sequence: number, version: string, stage: WeightsStaged_Stage) =>
      fact('weightsStaged', sequence, WeightsStaged.fromPartial({ version, stage }));
    const { STAGE_BURNED, STAGE_STABLE } = WeightsStaged_Stage;
    const back = [
      say(2, 'backtalk-v0', STAGE_STABLE),
      ...staged,
      say(4, 'backtalk-v1', STAGE_BURNED),
      say(5, 'backtalk-v2', STAGE_BURNED),
    ];
    const routes = Routes.fromPartial({
      fence: 4,
      stable: 'backtalk-v0',
      routes: [{ version: 'backtalk-v0', share: 1 }],
    });
    expect(audit(doctored({ staged: back, routes }))).toEqual([]);
  });

  it('accepts that an engine which failed before its first frame named no weights', () => {
    const { completed: answers, ...rest } = soundLog();
    const unsaid = { weightsVersion: '', weightsVersionAtEnd: '', trainable: false, finishReason: 'error' };
    const failed = fact('turnCompleted', 9, completed('c', '', unsaid));
    const ledger = [...sound().ledger, row('c', '', { finished: false, status: 503 })];
    expect(audit({ ledger, log: { ...rest, completed: [...answers, failed] } })).toEqual([]);
  });

  const { opened, completed: answers, judged, batches, trained, staged } = soundLog();
  const batch = batches[0]?.message ?? BatchClosed.fromPartial({});
  const stable = staged[0]?.message ?? WeightsStaged.fromPartial({});
  const cases: readonly (readonly [string, Evidence, string])[] = [
    ['a lost question', doctored({ opened: opened.slice(1) }), 'its question is lost'],
    ['a lost answer', doctored({ completed: answers.slice(0, 1) }), 'its answer is lost'],
    [
      'an answer stored twice',
      doctored({ completed: [...answers, ...answers.slice(0, 1)] }),
      'turn.completed a is in the log twice',
    ],
    [
      'another answer',
      doctored({ completed: [fact('turnCompleted', 2, completed('a', 'Gruß')), ...answers.slice(1)] }),
      'another answer',
    ],
    [
      'a finished answer whose last bytes never reached the client',
      doctored({ completed: [fact('turnCompleted', 2, completed('a', 'Grüße!')), ...answers.slice(1)] }),
      'another answer',
    ],
    [
      'another version',
      doctored({}, [row('a', 'Grüße', { weights: 'backtalk-v9' }), row('b', 'short', { continues: 'a' })]),
      'labelled backtalk-v9, and the engine said backtalk-v0',
    ],
    [
      'an engine that answered with other weights than were asked for',
      doctored({
        completed: [
          fact('turnCompleted', 2, completed('a', 'Grüße', { weightsVersion: 'x', weightsVersionAtEnd: 'x' })),
          ...answers.slice(1),
        ],
      }),
      'labelled backtalk-v0, and the engine said x at the start and x at the end, and it may be trained on',
    ],
    [
      'an engine that changed its mind in the last frame',
      doctored({
        completed: [
          fact('turnCompleted', 2, completed('a', 'Grüße', { weightsVersionAtEnd: 'backtalk-v1', trainable: false })),
          ...answers.slice(1),
        ],
      }),
      'the engine said backtalk-v0 at the start and backtalk-v1 at the end',
    ],
    [
      'a turn of nobody',
      doctored({ completed: [...answers, fact('turnCompleted', 9, completed('x', ''))] }),
      '1 turns are stored that no client',
    ],
    ['a lost next state', doctored({ continued: [] }), 'its next state is lost'],
    [
      'a stranger’s next state',
      doctored({ continued: [fact('turnContinued', 5, TurnContinued.fromPartial({ turn: 'a', continuedBy: 'x' }))] }),
      'not by x',
    ],
    ['a lost verdict', doctored({ judged: [] }), 'is not judged'],
    [
      'a verdict given twice',
      doctored({ judged: [...judged, ...judged] }),
      'turn.judged a revision 0 is in the log twice',
    ],
    [
      'a sample taken twice',
      doctored({ batches: [fact('batchClosed', 1, { ...batch, samples: [...batch.samples, ...batch.samples] })] }),
      'the sample a is in the log twice',
    ],
    [
      'a sample whose client said no',
      doctored({}, [row('a', 'Grüße', { optedOut: true }), row('b', 'short', { continues: 'a' })]),
      'its client said no',
    ],
    [
      'a sample that was cut off',
      doctored({
        completed: [fact('turnCompleted', 2, completed('a', 'Grüße', { trainable: false })), ...answers.slice(1)],
      }),
      'is not trainable',
    ],
    [
      'a cut answer that may be trained on',
      doctored({ completed: [...answers, fact('turnCompleted', 9, completed('c', 'x', { finishReason: 'abort' }))] }, [
        ...sound().ledger,
        row('c', '', { finished: false }),
      ]),
      'was cut off and may be trained on',
    ],
    ['a batch without its version', doctored({ trained: [] }), 'was never trained'],
    [
      'a version of another batch',
      doctored({
        trained: [fact('weightsTrained', 2, { ...(trained[0]?.message ?? WeightsTrained.fromPartial({})), batch: 7 })],
      }),
      'is not of its batch',
    ],
    [
      'an unknown parent',
      doctored({ batches: [fact('batchClosed', 1, { ...batch, parent: 'backtalk-v8' })] }),
      'unknown parent',
    ],
    [
      'a burned parent',
      doctored({
        batches: [
          ...batches,
          fact('batchClosed', 9, {
            ...batch,
            number: 2,
            version: 'backtalk-v2',
            parent: 'backtalk-v1',
            samples: [{ ...batch.samples[0], turn: 'b' }] as never,
          }),
        ],
        staged: [...staged, fact('weightsStaged', 4, { ...stable, stage: WeightsStaged_Stage.STAGE_BURNED })],
      }),
      'built upon the burned backtalk-v1',
    ],
    [
      'a version that was never staged',
      doctored(
        {
          staged: [],
          routes: undefined,
          completed: [
            fact(
              'turnCompleted',
              2,
              completed('a', 'Grüße', { weightsVersion: 'backtalk-v1', weightsVersionAtEnd: 'backtalk-v1' }),
            ),
            ...answers.slice(1),
          ],
        },
        [row('a', 'Grüße', { weights: 'backtalk-v1' }), row('b', 'short', { continues: 'a' })],
      ),
      'never staged',
    ],
    [
      'a fence that nobody set',
      doctored({
        routes: Routes.fromPartial({
          fence: 77,
          stable: 'backtalk-v1',
          routes: [{ version: 'backtalk-v1', share: 1 }],
        }),
      }),
      'backtalk-v1 by the fence 77, and what was decided last is backtalk-v1 by the fence 3',
    ],
    [
      'routes that lag behind the newest that was made stable',
      doctored({ staged: [...staged, fact('weightsStaged', 4, { ...stable, version: 'backtalk-v2' })] }),
      'backtalk-v1 by the fence 3, and what was decided last is backtalk-v2 by the fence 4',
    ],
    [
      'a version that answers although it was rolled back',
      doctored({
        staged: [
          fact('weightsStaged', 2, { ...stable, version: 'backtalk-v0' }),
          ...staged,
          fact('weightsStaged', 4, { ...stable, stage: WeightsStaged_Stage.STAGE_BURNED }),
        ],
      }),
      'backtalk-v1 by the fence 3, and what was decided last is backtalk-v0 by the fence 4',
    ],
    [
      'a share of the requests that goes to another version',
      doctored({
        routes: Routes.fromPartial({
          fence: 3,
          stable: 'backtalk-v1',
          routes: [
            { version: 'backtalk-v1', share: 0.9 },
            { version: 'backtalk-v0', share: 0.1 },
          ],
        }),
      }),
      'the routes lead to backtalk-v1 and backtalk-v0 by',
    ],
    [
      'routes that do not add up',
      doctored({ routes: Routes.fromPartial({ fence: 3, routes: [{ version: 'backtalk-v1', share: 0.5 }] }) }),
      'add up to 0.5',
    ],
    ['a dead letter', doctored({ deadLetters: 2 }), '2 facts became dead letters'],
  ];
  it.each(cases)('finds %s', (_what, evidence, problem) => {
    expect(audit(evidence)).toEqual(expect.arrayContaining([expect.stringContaining(problem)]));
  });
});

describe('continuations of two turns that are exchanged', () => {
  const crossed = (answer: string) =>
    audit({
      ledger: [
        row('a', 'Done.'),
        row('c', answer),
        row('b', 'short', { continues: 'a' }),
        row('d', 'long', { continues: 'c' }),
      ],
      log: {
        ...soundLog(),
        continued: [
          fact('turnContinued', 5, TurnContinued.fromPartial({ turn: 'a', continuedBy: 'd' })),
          fact('turnContinued', 6, TurnContinued.fromPartial({ turn: 'c', continuedBy: 'b' })),
        ],
      },
    }).filter((finding) => finding.includes('was continued by'));

  it('exchanged continuations are found, also where the two answers were the same', () => {
    expect(crossed('Done.')).toHaveLength(2);
    expect(crossed('Not yet.')).toHaveLength(2);
  });
});
