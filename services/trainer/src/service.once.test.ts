import { systemClock, type Clock } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { afterEach, describe, expect, it } from 'vitest';

import type { Trainer } from './service.js';
import { TrainerRig } from './testing/trainer-rig.js';

const environment = { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=1,waitMs=100,settleAtTurns=1' };
const hint = 'Answer in one brief sentence.';
let rig: TrainerRig;

afterEach(async () => {
  await rig.stop();
});

/** A process that starts so many hours later. */
function hoursLater(hours: number): Clock {
  return { ...systemClock, now: () => systemClock.now() + hours * 3_600_000 };
}

function startLater(hours: number, rememberedMax?: number): Promise<Trainer> {
  const remembered = rememberedMax === undefined ? {} : { rememberedMax };
  return rig.startTrainer(`at_${hours}`, {}, { clock: hoursLater(hours), ...remembered });
}

/** Every judged fact is settled; versions become stable as soon as they are trained. */
async function untilSettled(): Promise<void> {
  await until(
    async () => {
      const versions = await rig.versions();
      const newest = versions.at(-1)?.version;
      const { message: staged } = (await rig.reader.last('weightsStaged', {})) ?? {};
      if (newest !== undefined && staged?.version !== newest) await rig.stage(newest, WeightsStaged_Stage.STAGE_STABLE);
      return (
        (await rig.openFacts()) === 0 &&
        (await rig.batches()).filter(({ version }) => version !== '').length === versions.length
      );
    },
    { what: 'The end of every judged fact', everyMs: 50 },
  );
}

async function timesTaken(): Promise<number[]> {
  const times = new Map<string, number>();
  for (const { samples } of await rig.batches())
    for (const { turn } of samples) times.set(turn, (times.get(turn) ?? 0) + 1);
  return [...times.values()];
}

describe('a turn is in one batch, for ever', () => {
  it.each([undefined, 0])(
    'a turn is taken once when votes follow feedback hours later, with %s turns in memory',
    async (rememberedMax) => {
      rig = await TrainerRig.start({ environment });
      const first = await startLater(0, rememberedMax);
      await rig.say({ turn: 'spoken', revision: 1, hint });
      await untilSettled();
      await rig.stopTrainer(first);
      const second = await startLater(3, rememberedMax);
      await rig.judge({ turn: 'spoken', revision: 0, hint });
      await untilSettled();
      expect(await timesTaken()).toEqual([1]);
      expect(await rig.metric(second, /turns_judged_total\{.*outcome="settled_before"/)).toBe(1);
    },
  );

  it.each([undefined, 0])(
    'a turn is taken once when other words follow and no votes ever, with %s turns in memory',
    async (rememberedMax) => {
      rig = await TrainerRig.start({ environment });
      const first = await startLater(0, rememberedMax);
      await rig.say({ turn: 'spoken', revision: 1, hint });
      await untilSettled();
      await rig.stopTrainer(first);
      await startLater(3, rememberedMax);
      await rig.judge({ turn: 'spoken', revision: 2, verdict: 1 });
      await untilSettled();
      expect(await timesTaken()).toEqual([1]);
    },
  );

  it.each([1, Date.now() % 1_000_000])(
    'a turn is taken once, whatever the order of its facts and the restarts (seed %i)',
    async (seed) => {
      let value = seed;
      const random = (below: number): number => {
        value = (Math.imul(value, 1_664_525) + 1_013_904_223) >>> 0;
        return Math.floor((value / 2 ** 32) * below);
      };
      rig = await TrainerRig.start({ environment });
      const facts = Array.from({ length: 8 }, (_, n) => [0, 1, 2].map((revision) => ({ turn: `turn${n}`, revision })))
        .flat()
        .map((fact) => ({ fact, at: random(1_000) }))
        .sort((a, b) => a.at - b.at);
      const opened = new Set<string>();
      let trainer = await startLater(0, 3);
      for (const [index, { fact }] of facts.entries()) {
        if (opened.has(fact.turn)) await rig.judge({ ...fact, hint });
        else await rig.say({ ...fact, hint });
        opened.add(fact.turn);
        if (random(4) > 0) continue;
        if (random(2) > 0) await untilSettled();
        await rig.stopTrainer(trainer);
        trainer = await startLater(index * 2, random(4));
      }
      await untilSettled();
      expect(await timesTaken()).toEqual(Array(8).fill(1));
    },
  );
});
