import { FactPublisher, kvBucket } from '@backtalk/kit';
import { startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import { BatchClosed, WeightsTrained } from '@backtalk/proto/facts';
import { Routes } from '@backtalk/proto/weights';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { printCommand, runCommand, type Place } from '../testing/cluster-command.js';

const directory = new TemporaryDirectory('second-policy');
let nats: TestNats;
let place: Place;

/** Of the policies ada and ben, of which commands are about ada where they name none. */
beforeAll(async () => {
  nats = await startNats();
  place = { nats, user: 'cli', folder: directory.path, environment: { BACKTALK_POLICY: 'ada' } };
  const trainer = new FactPublisher(await nats.connect('trainer'));
  for (const policy of ['ada', 'ben']) {
    const version = `${policy}-v1`;
    const batch = BatchClosed.fromPartial({
      policy,
      number: 1,
      version,
      why: 'full',
      samples: [{ turn: 'turn_1', tenant: 't', user: 'u' }],
    });
    await trainer.publish('batchClosed', batch, { expectSequence: 0 });
    const made = WeightsTrained.fromPartial({ policy, version, parent: `${policy}-v0`, batch: 1 });
    await trainer.publish('weightsTrained', made, { expectSequence: 0 });
  }
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

it('a version is found by its name, whichever policy it is of', async () => {
  expect(await runCommand(place, ['versions', 'ben-v1'])).toMatchObject({ status: 0, values: [{ version: 'ben-v1' }] });
  const { status, complaint } = await runCommand(place, ['versions', 'nonsense']);
  expect({ status, complaint }).toEqual({
    status: 2,
    complaint: "version 'nonsense' is not a version, such as backtalk-v3.\n",
  });
});

it('learning that is paused goes on by the command that the pause names', async () => {
  const { stdout } = await printCommand(place, ['pause', '--policy', 'ben']);
  expect(stdout).toContain('ben does not learn until: npx backtalk resume --policy ben.');
});

it('learning of a policy that nothing serves and nothing was learned for is not paused', async () => {
  const routes = kvBucket(await nats.connect('publisher'), 'routes', Routes);
  for (const policy of ['ada', 'ben']) await routes.put(policy, Routes.fromPartial({ policy }));
  const { status, complaint } = await runCommand(place, ['pause', '--policy', 'bne']);
  expect({ status, complaint }).toEqual({ status: 2, complaint: "--policy 'bne' is not one of ada, ben.\n" });
});

it('numbers of training are of a preset or of a version, not of both', async () => {
  const { status, complaint } = await runCommand(place, ['recipe', 'small', '--of', 'ben-v1']);
  expect({ status, complaint }).toEqual({
    status: 2,
    complaint: "preset 'small' is not needed beside --of: leave one of the two out.\n",
  });
});

it('an export is of all policies, or of the one that is named', async () => {
  const exported = async (...words: string[]) => {
    const { values } = await runCommand(place, ['export', 'batches', ...words]);
    return values.map(({ fact, body }) => `${String(fact)} ${(body as { policy: string }).policy}`).sort();
  };
  const [ada, ben] = ['ada', 'ben'].map((policy) => [`batchClosed ${policy}`, `weightsTrained ${policy}`]);
  expect(await exported()).toEqual([...(ada ?? []), ...(ben ?? [])].sort());
  expect(await exported('--policy', 'ben')).toEqual(ben);
});
