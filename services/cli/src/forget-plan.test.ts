import {
  BatchClosed,
  LessonChanged,
  LessonChanged_Action,
  StepFigures,
  UserBaseline,
  WeightsStaged,
  WeightsStaged_Stage,
  WeightsTrained,
  type BatchSample,
  type ComparedAnswer,
} from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { forgettingOf, isReady, notRepeatedYet, revisionOf, type PolicyLog } from './forget-plan.js';

const { STAGE_CANDIDATE, STAGE_STABLE, STAGE_BURNED } = WeightsStaged_Stage;
const ada = { tenant: 't', user: 'ada' };
const own: Partial<BatchSample> = { turn: 'a', ...ada };
const others: Partial<BatchSample> = { turn: 'b', tenant: 't', user: 'ben' };
const compared: ComparedAnswer[] = [{ question: 'Who?', before: 'She.', after: 'Ada.' }];
const name = (at: number) => `p-v${String(at)}`;

/** A version for each list of samples, each made from the one before it and serving in its turn; a fact that names nobody at the end. */
function policy(
  steps: readonly (readonly Partial<BatchSample>[])[],
  batch: (at: number) => Partial<BatchClosed> = () => ({}),
) {
  let sequence = 0;
  const at = <M>(message: M) => ({ message, sequence: (sequence += 1) });
  const batches = steps.map((samples, index) =>
    at(
      BatchClosed.fromPartial({
        number: index + 1,
        version: name(index + 1),
        parent: name(index),
        samples: [...samples],
        ...batch(index + 1),
      }),
    ),
  );
  const head = at(BatchClosed.fromPartial({ number: steps.length + 1, why: 'lessons' }));
  const trained = steps.map((_, index) =>
    at(
      WeightsTrained.fromPartial({
        version: name(index + 1),
        parent: name(index),
        batch: index + 1,
        manifestDigest: `m${String(index + 1)}`,
      }),
    ),
  );
  const staged = [0, ...steps.map((_, index) => index + 1)].map((index) => stage(index, STAGE_STABLE, compared));
  function stage(index: number, of: WeightsStaged_Stage, answers: ComparedAnswer[] = []) {
    return at(WeightsStaged.fromPartial({ version: name(index), stage: of, compared: answers }));
  }
  const log: PolicyLog = { batches: [...batches, head], trained, staged, changes: [] };
  return { log, stage, at };
}

describe('what it takes to forget a person', () => {
  it('versions that learned from their turns, and all that were made from those, are theirs; the one before answers', () => {
    const { log } = policy([[others], [others, own], [others]]);
    expect(forgettingOf('p', ada, log)).toMatchObject({
      learned: ['p-v3', 'p-v2'],
      named: ['p-v2'],
      burns: ['p-v3', 'p-v2'],
      earlier: [
        { version: 'p-v1', manifest: 'm1' },
        { version: 'p-v0', manifest: '' },
      ],
      isNamed: false,
      manifests: ['m2', 'm3'],
    });
    expect(forgettingOf('p', { tenant: 'u', user: 'ada' }, log)).toMatchObject({
      learned: [],
      burns: [],
      facts: [],
    });
  });

  it.each([
    ['what they said of another’s answer', { ...others, giver: 'ada' }],
    ['a question on which their lesson was rehearsed', { turn: 'rehearsal_1', question: 1, lessons: ['theirs'] }],
    ['another’s turn whose teacher was shown their lesson', { ...others, lessons: ['theirs'] }],
  ])('a version learned from %s', (_, sample) => {
    const { lessons } = BatchClosed.fromPartial({ lessons: [{ id: 'theirs', scopeTenant: 't', scopeUser: 'ada' }] });
    const { log } = policy([[others], [sample]], (number) => (number === 2 ? { lessons } : {}));
    expect(forgettingOf('p', ada, log)).toMatchObject({ learned: ['p-v2'], burns: ['p-v2'] });
  });

  it('facts that name them go, in whatever way they do, and the newest batch is waited for where it does', () => {
    const naming: Partial<BatchClosed>[] = [
      { samples: [own] as BatchSample[] },
      { settled: [{ turn: 'a', ...ada, reason: 'stale' }] },
      { baselines: [UserBaseline.fromPartial({ user: 'ada', count: 1 })] },
      { steps: [StepFigures.fromPartial({ user: 'ada', group: 'g' })] },
      { lessons: BatchClosed.fromPartial({ lessons: [{ id: 'own', scopeTenant: 't', scopeUser: 'ada' }] }).lessons },
      {
        lessons: BatchClosed.fromPartial({
          lessons: [{ id: 'shared', scopeTenant: 't', cases: [{ turn: 'a', ...ada }] }],
        }).lessons,
      },
    ];
    const { log, at } = policy([[others]]);
    const batches = naming.map((fields) => at(BatchClosed.fromPartial(fields)));
    const given = at(LessonChanged.fromPartial({ ...ada, text: 'In French.' }));
    const another = at(LessonChanged.fromPartial({ ...ada, tenant: 'u' }));
    const last = at(BatchClosed.fromPartial({ lessonsThrough: 1_000 }));
    const whole = { ...log, batches: [...log.batches, ...batches, last], changes: [given, another] };
    expect(forgettingOf('p', ada, whole).facts).toEqual([given, ...batches].map(({ sequence }) => sequence));
    const named = forgettingOf('p', ada, { ...whole, batches: [...log.batches, ...batches] });
    expect(named.isNamed).toBe(true);
    expect(named.facts).not.toContain(batches.at(-1)?.sequence);
    // The trainer has not taken it in.
    expect(named.facts).not.toContain(given.sequence);
    expect(isReady(named)).toBe(false);
  });

  it('a version of others is theirs too where its batch has to go, since it holds a lesson or a baseline of theirs', () => {
    const { lessons } = BatchClosed.fromPartial({ lessons: [{ id: 'theirs', scopeTenant: 't', scopeUser: 'ada' }] });
    const baselines = [UserBaseline.fromPartial({ user: 'ada', mean: 0.5, count: 2 })];
    for (const fields of [{ lessons }, { baselines }]) {
      const { log } = policy([[others], [others]], (number) => (number === 2 ? fields : {}));
      const found = forgettingOf('p', ada, log);
      expect(found).toMatchObject({ learned: ['p-v2'], burns: ['p-v2'] });
      expect(found.facts).toContain(log.batches[1]?.sequence);
    }
  });

  it('a judgement of another’s turn that repeats their words makes its sample theirs', () => {
    const { log } = policy([[{ ...others, revision: 1 }], [{ ...others, turn: 'c', revision: 2 }]]);
    const said = new Set([revisionOf({ turn: 'c', revision: 2 }), revisionOf({ turn: 'b', revision: 3 })]);
    expect(forgettingOf('p', ada, log, said).learned).toEqual(['p-v2']);
  });

  it('a lesson for everyone that they gave or put in words is theirs, and one that they ended is not', () => {
    const held = ['given', 'edited', 'ended'].map((id) => ({ id, scopeTenant: 't' }));
    const { log, at } = policy([[others]]);
    const head = at(BatchClosed.fromPartial({ lessons: held, lessonsThrough: 1_000 }));
    const { ACTION_ADD, ACTION_EDIT, ACTION_RETIRE } = LessonChanged_Action;
    const said = { tenant: 't', giver: 'ada' };
    const changes = [
      at(LessonChanged.fromPartial({ ...said, lesson: 'given', action: ACTION_ADD })),
      at(LessonChanged.fromPartial({ ...said, lesson: 'edited', action: ACTION_EDIT })),
      at(LessonChanged.fromPartial({ ...said, lesson: 'ended', action: ACTION_RETIRE })),
    ];
    const found = forgettingOf('p', ada, { ...log, batches: [...log.batches, head], changes });
    expect(found).toMatchObject({ isNamed: true, lessons: 2, shared: ['given', 'edited'] });
  });

  it('what their versions answered goes once how each ended is said without it', () => {
    const { log, stage } = policy([[own], [others]]);
    const before = forgettingOf('p', ada, log);
    expect(before).toMatchObject({ burns: ['p-v2', 'p-v1'], isQuoted: true });
    expect(isReady(before)).toBe(false);
    const [, ...quoting] = log.staged;
    const burned = { ...log, staged: [...log.staged, stage(1, STAGE_BURNED), stage(2, STAGE_BURNED)] };
    const after = forgettingOf('p', ada, burned);
    expect(after).toMatchObject({ learned: ['p-v2', 'p-v1'], burns: [], isQuoted: false });
    expect(after.earlier).toEqual([{ version: 'p-v0', manifest: '' }]);
    expect(isReady(after)).toBe(true);
    expect(after.facts).toEqual([...quoting, ...log.batches.slice(0, 1)].map(({ sequence }) => sequence));
  });

  it('a version in the making that was made from theirs is waited for', () => {
    const { log, at } = policy([[own]]);
    const open = at(BatchClosed.fromPartial({ number: 3, version: 'p-v2', parent: 'p-v1', samples: [others] }));
    const making = { ...log, batches: [...log.batches, open] };
    expect(forgettingOf('p', ada, making)).toMatchObject({ pending: 'p-v2' });
    const givenUp = at(BatchClosed.fromPartial({ number: 4, why: 'burned_parent' }));
    expect(forgettingOf('p', ada, { ...making, batches: [...making.batches, givenUp] }).pending).toBe('');
    const candidate = at(WeightsStaged.fromPartial({ version: 'p-v2', stage: STAGE_CANDIDATE }));
    const trained = [...log.trained, at(WeightsTrained.fromPartial({ version: 'p-v2', parent: 'p-v1', batch: 3 }))];
    const decided = { ...making, trained, staged: [...log.staged, candidate] };
    expect(forgettingOf('p', ada, decided)).toMatchObject({ pending: 'p-v2', learned: ['p-v2', 'p-v1'] });
  });
});

it('steps of versions that are burned for their sake are waited for until each is repeated, or said not to be', () => {
  const { log, at } = policy([[others], [own], [others]]);
  const burn = (index: number, undone: boolean) =>
    at(WeightsStaged.fromPartial({ version: name(index), stage: STAGE_BURNED, undone }));
  const staged = [...log.staged, burn(1, false), burn(2, true), burn(3, true), burn(3, false)];
  expect(notRepeatedYet({ ...log, staged })).toEqual(['p-v2', 'p-v3']);
  const after = (more: Partial<BatchClosed>) =>
    notRepeatedYet({ ...log, staged, batches: [...log.batches, at(BatchClosed.fromPartial({ number: 9, ...more }))] });
  expect(after({ repeats: 3, first: 3 })).toEqual(['p-v2']);
  // The batch in between has left the log.
  expect(after({ repeats: 7, first: 3 })).toEqual(['p-v2']);
});
