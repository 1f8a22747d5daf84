import { FactPublisher, FactReader } from '@backtalk/kit';
import { startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import { BatchClosed, Lesson_State, LessonChanged, LessonChanged_Action } from '@backtalk/proto/facts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { printCommand, runCommand, type Place } from '../testing/cluster-command.js';

const directory = new TemporaryDirectory('undo-command');
let nats: TestNats;
let at: Place;

beforeAll(async () => {
  nats = await startNats();
  const environment = { BACKTALK_POLICY: 'fresh' };
  at = { nats, user: 'cli', folder: directory.path, environment };
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

describe('undo', () => {
  it('a lesson that no batch has taken in yet is retired, and taught nothing', async () => {
    const given = { policy: 'fresh', lesson: 'soon', id: 'given', tenant: 't', user: 'u', text: 'Use tables.' };
    const add = LessonChanged.fromPartial({ ...given, action: LessonChanged_Action.ACTION_ADD });
    await new FactPublisher(await nats.connect('gateway')).publish('lessonChanged', add);
    const { stdout } = await printCommand(at, ['undo', 'soon', '--dry-run']);
    expect(stdout).toContain('“Use tables.”\nNo version that answers was taught it: nothing else changes.');
    const undone = await runCommand(at, ['undo', 'soon', '--wait', '0s']);
    expect(undone).toMatchObject({ status: 1, values: [{ error: { code: 'undo_pending' } }] });
    const reader = new FactReader(await nats.connect('trainer'));
    const said = [];
    const filter = { lessonChanged: { policy: 'fresh' } };
    for await (const { message } of reader.read(['lessonChanged'], { filter })) said.push(message);
    const { ACTION_ADD, ACTION_RETIRE } = LessonChanged_Action;
    expect(said.map(({ action }) => action)).toEqual([ACTION_ADD, ACTION_RETIRE]);
    expect(said[1]).toMatchObject({ lesson: 'soon', tenant: 't', user: 'u', giver: '' });
    const closed = { policy: 'fresh', number: 1, lessonsThrough: 1_000_000 };
    const lessons = [{ id: 'soon', text: given.text, state: Lesson_State.STATE_RETIRED }];
    const trainer = new FactPublisher(await nats.connect('trainer'));
    await trainer.publish('batchClosed', BatchClosed.fromPartial({ ...closed, lessons }), { expectSequence: 0 });
    const again = await runCommand(at, ['undo', 'soon']);
    expect(again).toMatchObject({ status: 0, values: [{ done: true, retired: [], to: '' }] });
    const unknown = await printCommand(at, ['undo', 'never-was']);
    expect(unknown).toMatchObject({ status: 1 });
    expect(unknown.stderr).toContain('There is no lesson never-was (npx backtalk lessons lists them).');
  });
});
