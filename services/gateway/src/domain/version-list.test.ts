import { WeightsStaged, WeightsStaged_Stage } from '@backtalk/proto/facts';
import { expect, it } from 'vitest';
import { versionAnswer, withStage } from './version-list.js';

it('a version that engines had let go of says that it answers again, after a rollback', () => {
  const retired = { stage: WeightsStaged_Stage.STAGE_RETIRED, why: 'no engine holds it any more' };
  const staged = WeightsStaged.fromPartial({ policy: 'backtalk', version: 'backtalk-v2', ...retired });
  const [row] = withStage([], staged, 1_000);
  if (row === undefined) return expect.unreachable();
  expect(versionAnswer(row, 'backtalk-v3')).toMatchObject({ stage: 'retired', serving: false, why: retired.why });
  expect(versionAnswer(row, 'backtalk-v2')).toMatchObject({ stage: 'stable', serving: true, why: null });
});
