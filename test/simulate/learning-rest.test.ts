import { learningSwitch, type LearningSwitch, type PolicyDocument } from '@backtalk/kit';
import { startNats, type TestNats } from '@backtalk/kit/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { LearningRest } from './learning-rest.js';

let nats: TestNats;
let setting: PolicyDocument<LearningSwitch>;
let rest: LearningRest;

beforeAll(async () => {
  nats = await startNats();
  setting = learningSwitch(await nats.connect('admin'), 'backtalk');
});
beforeEach(() => {
  const { url: natsUrl, user: natsUser, password: natsPassword } = nats.credentials('cli');
  rest = new LearningRest({ policy: 'backtalk', natsUrl, natsUser, natsPassword, wire: { tokens: {} } });
});
afterAll(async () => {
  await nats.stop();
});

const found = async () => (await setting.get())?.value;

describe('learning that rests while versions are measured', () => {
  it('learning goes on as it was found, with the hold that it was found with', async () => {
    await setting.put({ paused: false, resumedAfter: 2, resumedAfterBatch: 7 });
    await rest.set(true);
    expect(await found()).toMatchObject({ paused: true });
    await rest.set(false);
    expect(await found()).toEqual({ paused: false, resumedAfter: 2, resumedAfterBatch: 7 });
  });

  it('learning goes on where no operator had ever said anything', async () => {
    await setting.delete();
    await rest.set(true);
    expect(await found()).toEqual({ paused: true });
    await rest.set(false);
    expect(await found()).toEqual({ paused: false });
  });

  it('a pause that an operator had set is not ended', async () => {
    await setting.put({ paused: true, resumedAfter: 2 });
    await rest.set(true);
    expect(rest.leftToDo).toBe('');
    await rest.set(false);
    expect(await found()).toEqual({ paused: true, resumedAfter: 2 });
  });

  it('a pause that an operator sets meanwhile is not ended', async () => {
    await setting.put({ paused: false });
    await rest.set(true);
    await setting.put({ paused: true, resumedAfter: 3 });
    await rest.set(false);
    expect(await found()).toEqual({ paused: true, resumedAfter: 3 });
    expect(rest.leftToDo).toBe('');
  });

  it('what is left to do is said until learning goes on', async () => {
    await setting.put({ paused: false });
    await rest.set(true);
    expect(rest.leftToDo).toBe('Learning of backtalk is left paused: npx backtalk resume');
    await rest.set(false);
    expect(rest.leftToDo).toBe('');
  });
});
