import {
  BatchClosed,
  Lesson,
  Lesson_State,
  LessonChanged,
  LessonChanged_Action,
  WeightsStaged,
  WeightsStaged_Stage,
  WeightsTrained,
  type BatchSample,
  type ComparedAnswer,
} from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { undoPlan } from './undo-plan.js';

const { STATE_ACTIVE, STATE_LEARNED, STATE_RETIRED, STATE_HEARD } = Lesson_State;
const { STAGE_CANDIDATE, STAGE_STABLE, STAGE_BURNED, STAGE_RETIRED } = WeightsStaged_Stage;

type Sample = Partial<BatchSample>;

/** A version for each list of samples, each made from the one before it and serving in its turn. */
function policy(steps: readonly (readonly Sample[])[], lessons: readonly Partial<Lesson>[]) {
  const name = (at: number) => `p-v${String(at)}`;
  const batches = steps.map((samples, at) =>
    BatchClosed.fromPartial({ number: at + 1, version: name(at + 1), samples: [...samples], lessons: [...lessons] }),
  );
  const trained = steps.map((_, at) =>
    WeightsTrained.fromPartial({ version: name(at + 1), parent: name(at), batch: at + 1 }),
  );
  const staged = [0, ...steps.map((_, at) => at + 1)].flatMap((at) => [
    ...(at === 0 ? [] : [WeightsStaged.fromPartial({ version: name(at), stage: STAGE_CANDIDATE })]),
    WeightsStaged.fromPartial({ version: name(at), stage: STAGE_STABLE }),
  ]);
  return { batches, trained, staged };
}

const taught = (...lessons: string[]): Sample => ({ turn: 't', lessons });
const lesson = (id: string, state: Lesson_State, more: Partial<Lesson> = {}) => ({ id, text: id, state, ...more });
const idsOf = (lessons: readonly Lesson[] = []) => lessons.map(({ id }) => id);

describe('what it takes to undo a lesson', () => {
  const lessons = [lesson('lists', STATE_LEARNED), lesson('metric', STATE_LEARNED), lesson('polite', STATE_LEARNED)];
  const facts = policy(
    [[taught('polite')], [taught('polite', 'lists')], [taught('metric')], [taught('lists')]],
    lessons,
  );

  it('the version before the first that was taught it answers again, and all since are burned, newest first', () => {
    const plan = undoPlan('lists', facts);
    expect(plan).toMatchObject({ to: 'p-v1', burned: ['p-v4', 'p-v3', 'p-v2'] });
    expect(idsOf(plan?.retired)).toEqual(['lists']);
  });

  it('lessons of burned versions that are in force are learned again, and those of versions that stay are not', () => {
    expect(idsOf(undoPlan('metric', facts)?.again)).toEqual(['lists']);
    expect(idsOf(undoPlan('lists', facts)?.again)).toEqual(['metric', 'polite']);
    const ended = lessons.map((one) => (one.id === 'metric' ? { ...one, state: STATE_RETIRED } : one));
    const withoutMetric = {
      ...facts,
      batches: facts.batches.map((batch) => BatchClosed.fromPartial({ ...batch, lessons: ended })),
    };
    expect(idsOf(undoPlan('lists', withoutMetric)?.again)).toEqual(['polite']);
  });

  it('what is made upon a version that was burned for it is burned too, where an undo was broken off', () => {
    const burned = WeightsStaged.fromPartial({ version: 'p-v2', stage: STAGE_BURNED, undone: true });
    const half = policy([[taught('polite')], [taught('lists')], [taught('metric')]], lessons);
    expect(undoPlan('lists', { ...half, staged: [...half.staged, burned] })).toMatchObject({
      to: 'p-v1',
      burned: ['p-v3'],
    });
  });

  it('wordings that it covers end with it, and a covered one is undone with its cover', () => {
    const covered = [
      lesson('lists', STATE_ACTIVE),
      lesson('in lists', STATE_ACTIVE, { coveredBy: 'lists' }),
      lesson('as a list', STATE_RETIRED, { coveredBy: 'lists' }),
      lesson('metric', STATE_ACTIVE),
    ];
    const same = policy([[taught('metric')], [taught('lists')]], covered);
    for (const id of ['lists', 'in lists']) {
      const plan = undoPlan(id, same);
      expect(plan).toMatchObject({ to: 'p-v1', burned: ['p-v2'] });
      expect(idsOf(plan?.retired)).toEqual(['lists', 'in lists']);
    }
  });

  it('a correction that was shown to the teacher of its own turn taught it before it was a lesson', () => {
    const heard = [
      lesson('lists', STATE_HEARD, { firstTurn: 'first', cases: [{ turn: 'second', tenant: '', user: '' }] }),
    ];
    for (const turn of ['first', 'second']) {
      const early = policy([[taught()], [{ turn, hindsight: 'As a list, please.' }], [taught('lists')]], heard);
      expect(undoPlan('lists', early)).toMatchObject({ to: 'p-v1', burned: ['p-v3', 'p-v2'] });
    }
    const others = policy([[{ turn: 'first' }], [{ turn: 'other', hindsight: 'Shorter.' }]], heard);
    expect(undoPlan('lists', others)).toMatchObject({ to: '', burned: [] });
  });

  it('burned versions and candidates count for nothing, and retired ones still do', () => {
    const staged = [
      ...facts.staged,
      ...['p-v2', 'p-v4'].map((version) => WeightsStaged.fromPartial({ version, stage: STAGE_BURNED })),
      WeightsStaged.fromPartial({ version: 'p-v1', stage: STAGE_RETIRED }),
      WeightsStaged.fromPartial({ version: 'p-v5', stage: STAGE_CANDIDATE }),
    ];
    expect(undoPlan('lists', { ...facts, staged })).toMatchObject({ to: '', burned: [], again: [] });
    expect(undoPlan('metric', { ...facts, staged })).toMatchObject({ to: 'p-v1', burned: ['p-v3'] });
  });

  it('wordings that were covered before they ended are known by the log, and a repeated undo goes as far back', () => {
    const first = policy([[taught('in lists')], [taught('lists')]], [lesson('in lists', STATE_ACTIVE)]);
    const [one, two] = first.batches;
    const covered = [lesson('lists', STATE_ACTIVE), lesson('in lists', STATE_ACTIVE, { coveredBy: 'lists' })];
    const ended = [lesson('lists', STATE_RETIRED), lesson('in lists', STATE_RETIRED)];
    const after = BatchClosed.fromPartial({ number: 3, why: 'lessons', lessons: ended });
    const batches = [...(one ? [one] : []), BatchClosed.fromPartial({ ...two, lessons: covered })];
    const fresh = undoPlan('lists', { ...first, batches });
    expect(fresh).toMatchObject({ to: 'p-v0', burned: ['p-v2', 'p-v1'] });
    expect(undoPlan('lists', { ...first, batches: [...batches, after] })).toMatchObject({ to: 'p-v0', retired: [] });
    // What stands on its own now is another wish.
    const apart = BatchClosed.fromPartial({
      number: 3,
      lessons: [lesson('lists', STATE_RETIRED), lesson('in lists', STATE_ACTIVE)],
    });
    expect(undoPlan('lists', { ...first, batches: [...batches, apart] })).toMatchObject({ to: 'p-v1' });
  });

  describe('a version in the making that was taught it', () => {
    const made = policy([[taught('metric')], [taught('lists')]], lessons);
    const before = made.staged.filter(({ version }) => version !== 'p-v2');
    const candidate = WeightsStaged.fromPartial({ version: 'p-v2', stage: STAGE_CANDIDATE });
    const changing = BatchClosed.fromPartial({ number: 3, why: 'lessons', lessons });
    const giving = BatchClosed.fromPartial({ number: 3, why: 'step_failed', lessons });

    it.each([
      ['an open batch', { ...made, trained: made.trained.slice(0, 1), staged: before }, 'p-v2'],
      ['a version that is not staged yet', { ...made, staged: before }, 'p-v2'],
      [
        'an open batch, after which lessons were changed',
        { ...made, batches: [...made.batches, changing], trained: made.trained.slice(0, 1), staged: before },
        'p-v2',
      ],
      ['a candidate', { ...made, staged: [...before, candidate] }, 'p-v2'],
      ['a version that answers', made, ''],
      [
        'a batch that was given up',
        { ...made, batches: [...made.batches, giving], trained: made.trained.slice(0, 1), staged: before },
        '',
      ],
    ])('%s', (_name, given, pending) => {
      expect(undoPlan('lists', given)?.pending).toBe(pending);
      expect(undoPlan('polite', given)?.pending).toBe('');
    });
  });

  it('a lesson that taught nothing ends, one that ended before is not ended again, and an unknown one is not there', () => {
    const quiet = policy([[taught('metric')]], [lesson('lists', STATE_ACTIVE), lesson('old', STATE_RETIRED)]);
    expect(undoPlan('lists', quiet)).toMatchObject({ to: '', burned: [], retired: [{ id: 'lists' }] });
    expect(undoPlan('old', quiet)).toMatchObject({ to: '', retired: [] });
    expect(undoPlan('elsewhere', quiet)).toBeUndefined();
    expect(undoPlan('lists', { batches: [], trained: [], staged: [] })).toBeUndefined();
  });

  describe('a lesson that was given and that no batch has taken in yet', () => {
    const { ACTION_ADD, ACTION_RETIRE, ACTION_ERASE } = LessonChanged_Action;
    const ids = { lesson: 'soon', tenant: 'acme', user: 'ann' };
    const change = (sequence: number, action: LessonChanged_Action, more: Partial<LessonChanged> = {}) => ({
      sequence,
      message: LessonChanged.fromPartial({ ...ids, action, ...more }),
    });
    const through = BatchClosed.fromPartial({ number: 5, lessonsThrough: 7, lessons });
    const given = { ...facts, batches: [...facts.batches, through] };

    it('a lesson that is not taken in yet ends, and taught nothing', () => {
      const plan = undoPlan('soon', given, [change(8, ACTION_ADD, { text: 'Use tables.' })]);
      expect(plan).toMatchObject({ to: '', burned: [], again: [], pending: '' });
      expect(plan?.retired).toMatchObject([
        { id: 'soon', text: 'Use tables.', scopeTenant: 'acme', scopeUser: 'ann', state: STATE_ACTIVE },
      ]);
      expect(undoPlan('soon', { batches: [], trained: [], staged: [] }, [change(8, ACTION_ADD)])).toBeDefined();
    });

    it('a lesson that is not taken in yet stays in the plan until the trainer has taken in that it ended', () => {
      expect(idsOf(undoPlan('soon', given, [change(8, ACTION_ADD), change(9, ACTION_RETIRE)])?.retired)).toEqual([
        'soon',
      ]);
      const ended = { ...through, lessonsThrough: 9, lessons: [Lesson.fromPartial(lesson('soon', STATE_RETIRED))] };
      const taken = { ...facts, batches: [...facts.batches, ended] };
      expect(undoPlan('soon', taken, [change(8, ACTION_ADD), change(9, ACTION_RETIRE)])?.retired).toEqual([]);
    });

    it('a lesson that a batch has let go, or whose person is forgotten, is not there', () => {
      expect(undoPlan('soon', given, [change(7, ACTION_ADD)])).toBeUndefined();
      const erased = change(9, ACTION_ERASE, { lesson: '' });
      expect(undoPlan('soon', given, [change(8, ACTION_ADD), erased])).toBeUndefined();
      const another = change(9, ACTION_ERASE, { lesson: '', user: 'bob' });
      expect(undoPlan('soon', given, [change(8, ACTION_ADD), another])).toBeDefined();
    });
  });

  it('what is answered otherwise then: of each question the newest answer, and the one from before the first burned version', () => {
    const compare = (version: string, ...compared: ComparedAnswer[]) =>
      WeightsStaged.fromPartial({ version, stage: STAGE_STABLE, compared });
    const answer = (question: string, before: string, after: string) => ({ question, before, after });
    const staged = [
      compare('p-v0'),
      compare('p-v1', answer('Tea?', 'none', 'plain')),
      compare('p-v2', answer('Tea?', 'plain', '1. plain'), answer('Rain?', 'wet', '1. wet')),
      compare('p-v3', answer('Tea?', '1. plain', '1. hot'), answer('Rain?', '1. wet', 'wet')),
      compare('p-v4'),
    ];
    expect(undoPlan('lists', { ...facts, staged })?.compared).toEqual([answer('Tea?', '1. hot', 'plain')]);
  });
});
