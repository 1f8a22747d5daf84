import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { inheritedEnvironment, learningSwitch, type LearningSwitch, type PolicyDocument } from '@backtalk/kit';
import { repositoryRoot, startNats, until, type TestNats } from '@backtalk/kit/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { says, startScriptedModel, type ScriptedModel } from './testing/scripted-model.js';

/** Of the rows that a version is compared with, which are scored before it. */
const comparisons = 4;
const advice = 'Learning of backtalk is left paused: npx backtalk resume\n';

let nats: TestNats;
let setting: PolicyDocument<LearningSwitch>;
let endpoint: ScriptedModel;
let reader: ScriptedModel;
/** Scorings that were asked for, also in earlier runs. */
let scored: number;

beforeAll(async () => {
  nats = await startNats();
  setting = learningSwitch(await nats.connect('admin'), 'backtalk');
  const headers = { 'x-backtalk-weights': 'backtalk-v1' };
  endpoint = await startScriptedModel('backtalk', () => ({ ...says('An answer of five words.'), headers }));
  // It never comes to an end with the version.
  reader = await startScriptedModel('reader', () => {
    scored += 1;
    return scored > comparisons ? undefined : says({ answers: true, score: 1 });
  });
});
beforeEach(async () => {
  scored = 0;
  await setting.put({ paused: false, resumedAfter: 4 });
});
afterAll(async () => {
  await endpoint.stop();
  await reader.stop();
  await nats.stop();
});

/** Resolves when learning rests, and the version's answers are being scored. */
async function measuring() {
  const { url, user, password } = nats.credentials('cli');
  const env = {
    PATH: inheritedEnvironment()['PATH'] ?? '',
    BACKTALK_NATS_URL: url,
    BACKTALK_NATS_USER: user,
    BACKTALK_NATS_PASSWORD: password,
    BACKTALK_ENDPOINT: endpoint.url,
  };
  const tool = join(repositoryRoot(), 'test', 'dist', 'simulate', 'main.js');
  const words = ['--user', 'name', '--scorer-url', reader.url, '--questions', '1', '--sessions', '1'];
  const child = spawn(process.execPath, [tool, ...words], { env, timeout: 60_000 });
  const status = new Promise((resolve) => child.once('exit', resolve));
  const complaints = text(child.stderr);
  child.stdout.resume();
  await until(() => scored > comparisons, { what: 'The version is scored', timeoutMs: 30_000 });
  expect((await setting.get())?.value.paused).toBe(true);
  return { child, status, complaints };
}

describe('a simulation that measures a version', () => {
  it('a person who interrupts it finds learning as it was, and does not wait for the scorer', async () => {
    const { child, status, complaints } = await measuring();
    child.kill('SIGINT');
    await status;
    expect((await setting.get())?.value).toEqual({ paused: false, resumedAfter: 4 });
    expect(await complaints).not.toContain(advice);
  });

  it('a person is told where it ends so soon that learning is left paused', async () => {
    const { child, status, complaints } = await measuring();
    // Its wish to put the switch back is not heard any more.
    nats.pause();
    child.kill('SIGTERM');
    expect(await status).toBe(143);
    expect(await complaints).toContain(advice);
    nats.resume();
  });
});
