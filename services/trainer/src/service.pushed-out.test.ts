import type { Logger } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { LessonChanged_Action } from '@backtalk/proto/facts';
import { afterEach, expect, it } from 'vitest';

import { TrainerRig } from './testing/trainer-rig.js';

let rig: TrainerRig;

afterEach(() => rig.stop());

it('a lesson in force that a wish of a chat pushes out is named in the log', async () => {
  rig = await TrainerRig.start({ environment: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' } });
  await rig.pause(true);
  const said: unknown[] = [];
  const ignored = () => undefined;
  const logger: Logger = {
    debug: ignored,
    info: ignored,
    error: ignored,
    warn: (event, facts) => {
      if (event === 'lesson_pushed_out') said.push(facts);
    },
  };
  const trainer = await rig.startTrainer('one', {}, { logger });
  const given = { user: 'user0', action: LessonChanged_Action.ACTION_ADD };
  const names = Array.from({ length: 64 }, (_, at) => `${'abcdefgh'[at >> 3] ?? ''}${'ijklmnop'[at & 7] ?? ''}`);
  for (const name of names)
    await rig.changeLesson({ ...given, id: `c_${name}`, lesson: `l_${name}`, text: `Mention ${name}zz.` });
  await rig.correct(2, { name: 'a', hint: 'From now on use tables.' });
  await until(async () => (await rig.metric(trainer, /turns_pending\{.*kind="effective"/)) === 2);
  const active = async () => (await rig.batches()).at(-1)?.lessons.length;
  await until(async () => (await active()) === 64);
  await rig.pause(false);
  await rig.untilVersions(1);
  const lessons = (await rig.batches()).at(-1)?.lessons ?? [];
  expect([lessons.length, lessons.at(-1)?.text]).toEqual([64, 'From now on use tables.']);
  expect(said).toMatchObject([{ lesson: 'l_ai' }]);
});
