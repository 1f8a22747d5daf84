import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isJsonObject } from '@backtalk/kit';
import { startNats, TemporaryDirectory, until, type TestNats } from '@backtalk/kit/testing';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { printCommand, runCommand, startCommand } from '../testing/cluster-command.js';

const directory = new TemporaryDirectory('rollout');
let nats: TestNats;
let gateway: Server;

interface Asked {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Record<string, unknown>;
}

const asked: Asked[] = [];
/** What the gateway says to outcomes, the last one again and again. */
let outcomeStatus: readonly number[] = [200];
/** and to questions. */
let answerStatus = 200;

beforeAll(async () => {
  nats = await startNats();
  gateway = createServer((request, response) => {
    void answer(request).then(({ status, body }) => {
      response.writeHead(status, { 'content-type': 'application/json', 'x-backtalk-weights': 'backtalk-v3' });
      response.end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
});

afterAll(async () => {
  gateway.close();
  await nats.stop();
  directory.remove();
});

beforeEach(() => {
  asked.length = 0;
  outcomeStatus = [200];
  answerStatus = 200;
});

/** Says the number of the messages that it is given, and calls a tool where there is one. */
async function answer(request: IncomingMessage): Promise<{ status: number; body: object }> {
  let text = '';
  for await (const piece of request.setEncoding('utf8') as AsyncIterable<string>) text += piece;
  const body: unknown = JSON.parse(text);
  if (!isJsonObject(body)) return { status: 400, body: {} };
  const path = request.url ?? '';
  asked.push({ path, headers: request.headers, body });
  if (path.endsWith('/outcome')) {
    const [status = 200, ...later] = outcomeStatus;
    if (later.length > 0) outcomeStatus = later;
    return { status, body: { stored: true, error: { message: 'late' } } };
  }
  if (answerStatus !== 200) return { status: answerStatus, body: { error: { message: 'no' } } };
  const content = `number ${String(Array.isArray(body['messages']) ? body['messages'].length : 0)}`;
  const calls = body['tools'] === undefined ? {} : { tool_calls: [{ id: 'c1', type: 'function' }] };
  return { status: 200, body: { choices: [{ message: { role: 'assistant', content, ...calls } }] } };
}

/** Asks a task twice, notes all that it is told, and gives the score that the task has for the attempt. */
const environment = `
const lines = require('node:readline').createInterface({ input: process.stdin });
const say = (message) => console.log(JSON.stringify(message));
let attempt, answers = 0, task;
require('node:fs').writeFileSync('known', Object.keys(process.env).join(' '));
lines.on('line', (line) => {
  require('node:fs').appendFileSync('told', line + '\\n');
  const told = JSON.parse(line);
  if (told.task !== undefined) {
    ({ task, attempt } = told);
    const words = task.do?.[attempt - 1];
    if (words === 'die') { console.error('first'); console.error('no such page'); process.exit(3); }
    if (words === 'babble') console.log('hello');
    else if (words === 'hang') {
      process.on('SIGTERM', () => undefined);
      setInterval(() => undefined, 1_000);
      require('node:fs').writeFileSync('pid', String(process.pid));
    }
    else if (words === 'rush') say({ score: 1 });
    else say({ messages: [{ role: 'user', content: task.question }], ...(task.tools && { tools: task.tools }) });
  } else if (++answers === 2 && task.last === 'cut') {
    process.stdout.write(JSON.stringify({ score: task.scores[attempt - 1] }), () => process.exit());
  } else if (answers === 2 && task.last === 'tidy') {
    say({ score: task.scores[attempt - 1] });
    lines.on('close', () => setTimeout(() => require('node:fs').writeFileSync('tidied', 'yes'), 300));
  } else if (answers === 2) say({ score: task.scores[attempt - 1] });
  else say({ messages: [{ role: 'tool', content: 'seen', tool_call_id: 'c1' }] });
});
`;

function place(tasks: readonly (object | string)[]) {
  writeFileSync(directory.join('environment.cjs'), environment);
  writeFileSync(directory.join('told'), '');
  for (const name of ['pid', 'tidied']) rmSync(directory.join(name), { force: true });
  writeFileSync(
    directory.join('tasks.jsonl'),
    tasks.map((task) => (typeof task === 'string' ? task : JSON.stringify(task))).join('\n'),
  );
  const { port } = gateway.address() as AddressInfo;
  const own = { BACKTALK_ENDPOINT: `http://127.0.0.1:${String(port)}/v1` };
  return { nats, user: 'cli' as const, folder: directory.path, environment: own };
}

function isGone(pid: number): boolean {
  try {
    return !process.kill(pid, 0);
  } catch {
    return true;
  }
}

const words = ['rollout', 'tasks.jsonl', '--environment', 'node environment.cjs', '--attempts', '2'];
const outcomes = () => asked.filter(({ path }) => path.endsWith('/outcome'));
const turns = () => asked.filter(({ path }) => path.endsWith('/chat/completions'));
const one = { question: 'Open the page.', scores: [1, -0.5] };
const two = { question: 'Close it.', scores: [0, 0], tools: [{ type: 'function', function: { name: 'close' } }] };

it('a command whose reader has enough of it ends what it has begun', async () => {
  const command = startCommand(place([one, two, one]), words);
  command.stopReading();
  expect(await command.ended).toMatchObject({ status: 0, stderr: '' });
  expect(outcomes()).toHaveLength(6);
});

it('attempts at a task are sessions of one group, and each is told how it went and how many there are', async () => {
  const { status, values } = await runCommand(place([one, two]), words);
  expect(status).toBe(0);
  const groups = new Map<string, Set<string>>();
  for (const { headers } of turns()) {
    expect(headers['x-turn-type']).toBe('environment');
    const [group, session] = [String(headers['x-group-id']), String(headers['x-session-id'])];
    groups.set(group, (groups.get(group) ?? new Set()).add(session));
  }
  expect([...groups.values()].map(({ size }) => size)).toEqual([2, 2]);
  const sessions = [...groups.values()].flatMap((names) => [...names]);
  expect(new Set(sessions).size).toBe(4);
  expect(
    outcomes()
      .map(({ path }) => path.split('/').at(-2) ?? '')
      .sort(),
  ).toEqual(sessions.sort());
  expect(outcomes().map(({ body }) => body)).toEqual(
    expect.arrayContaining([
      { score: 1, attempts: 2 },
      { score: -0.5, attempts: 2 },
    ]),
  );
  expect(values).toMatchObject([
    { task: expect.any(Number) as number, round: 1, broken: [], late: 0 },
    { attempts: [{ steps: 2, version: 'backtalk-v3' }, { steps: 2 }] },
    { versions: [{ version: 'backtalk-v3', attempts: 4, through: 1, mean: 0.125 }], groups: 2, tried: 2, differ: 1 },
  ]);
});

it('an environment is told the task and each answer, and the model is shown all that went before, with the tools', async () => {
  await runCommand(place([two]), [...words, '--attempts', '1', '--max-tokens', '7']);
  const told = readFileSync(directory.join('told'), 'utf8').trim().split('\n');
  expect(told.map((line): unknown => JSON.parse(line))).toEqual([
    { task: two, attempt: 1 },
    { answer: { role: 'assistant', content: 'number 1', tool_calls: [{ id: 'c1', type: 'function' }] } },
    { answer: { role: 'assistant', content: 'number 3', tool_calls: [{ id: 'c1', type: 'function' }] } },
  ]);
  expect(turns()[1]?.body).toMatchObject({
    model: 'backtalk',
    max_completion_tokens: 7,
    tools: two.tools,
    messages: [
      { role: 'user', content: two.question },
      { role: 'assistant', tool_calls: [{ id: 'c1' }] },
      { role: 'tool', content: 'seen' },
    ],
  });
});

it('rounds are groups of their own, and an attempt that breaks is none of its group', async () => {
  const dies = { question: 'Open it.', scores: [1, 1], do: ['', 'die'] };
  const { status, values } = await runCommand(place([dies]), [...words, '--rounds', '2']);
  expect(status).toBe(0);
  expect(new Set(turns().map(({ headers }) => headers['x-group-id'])).size).toBe(2);
  expect(outcomes().map(({ body }) => body)).toEqual(Array(2).fill({ score: 1, attempts: 1 }));
  const why = 'It ended with 3 before it gave a score: no such page';
  const rounds = values.slice(0, 2).map(({ round, broken }) => [round, broken]);
  expect(rounds.sort(([a], [b]) => Number(a) - Number(b))).toEqual([
    [1, [why]],
    [2, [why]],
  ]);
});

it.each([
  ['what is no message', 'babble', /neither messages nor a score from -1 to 1: hello/],
  ['a score before any answer', 'rush', /a score before any answer/],
])('an environment that says %s is named, and the tasks behind it are not tried', async (_what, how, expected) => {
  const breaks = { question: 'x', scores: [1, 1], do: [how, how] };
  const { status, values } = await runCommand(place([breaks, one]), [...words, '--at-once', '1']);
  expect({ status, last: values.at(-1) }).toMatchObject({ status: 1, last: { error: { code: 'environment_failed' } } });
  expect(JSON.stringify(values)).toMatch(expected);
  expect(turns()).toEqual([]);
});

it('what else is being tried is ended where an environment fails', async () => {
  const breaks = { question: 'x', scores: [1], do: ['rush'] };
  const hangs = { question: 'x', scores: [1], do: ['hang'] };
  const both = [...words, '--attempts', '1', '--at-once', '2', '--wait', '1h'];
  const { status, values } = await runCommand(place([hangs, breaks]), both);
  expect({ status, last: values.at(-1) }).toMatchObject({ status: 1, last: { error: { code: 'environment_failed' } } });
});

it('an environment that says nothing is ended, and one that never gives a score', async () => {
  const hangs = { question: 'x', scores: [1], do: ['hang'] };
  const silent = await runCommand(place([hangs]), [...words, '--attempts', '1', '--wait', '1s']);
  expect(JSON.stringify(silent.values)).toContain('It said nothing for 1 s.');
  const pid = Number(readFileSync(directory.join('pid'), 'utf8'));
  await until(() => isGone(pid), { what: 'The end of the environment' });
  const endless = await runCommand(place([one]), [...words, '--steps', '1']);
  expect(JSON.stringify(endless.values)).toContain('no score after 1 answers');
});

it('nothing is told, and nothing may be learned, where it is only measured', async () => {
  const { status } = await runCommand(place([one]), [...words, '--no-train']);
  expect(status).toBe(0);
  expect(outcomes()).toEqual([]);
  for (const { headers } of turns())
    expect([headers['x-backtalk-train'], headers['x-group-id']]).toEqual(['off', undefined]);
});

it('an outcome that comes too late is said, and any other refusal ends the command', async () => {
  outcomeStatus = [409];
  const { stdout, status } = await printCommand(place([one]), words);
  expect({ status, stdout }).toMatchObject({ status: 0 });
  expect(stdout).toMatch(/1 of 2 came through · mean score 0\.25 · 2 outcomes came too late/);
  outcomeStatus = [403];
  const refused = await runCommand(place([one]), words);
  expect(refused).toMatchObject({ status: 1 });
  // What was measured is shown all the same.
  expect(refused.values).toMatchObject([
    { attempts: [{}, {}], untold: 2 },
    { tried: 1 },
    { error: { code: 'refused' } },
  ]);
});

it('the session that was silent for longest is told first, and the others how many are left', async () => {
  outcomeStatus = [409, 200];
  const { values } = await runCommand(place([one]), words);
  expect(outcomes().map(({ body }) => body['attempts'])).toEqual([2, 1]);
  expect(values[0]).toMatchObject({ late: 1 });
});

it('an endpoint that refuses the key is no fault of the environment', async () => {
  answerStatus = 401;
  const { status, values } = await runCommand(place([one]), words);
  expect({ status, last: values.at(-1) }).toMatchObject({ status: 1, last: { error: { code: 'refused' } } });
});

it('Ctrl-C ends what is being tried, tells what was, and shows it', async () => {
  const hangs = { ...one, do: ['', 'hang'] };
  const own = place([hangs, one]);
  const child = startCommand(own, [...words, '--at-once', '2', '--wait', '1h']);
  await until(() => existsSync(directory.join('pid')) && turns().length >= 2, { what: 'Both attempts' });
  const pid = Number(readFileSync(directory.join('pid'), 'utf8'));
  await until(() => readFileSync(directory.join('told'), 'utf8').split('\n').length > 4, { what: 'The other score' });
  child.kill('SIGINT');
  const { status, stdout } = await child.ended;
  expect(status).toBe(130);
  expect(stdout).toMatch(/task 1: 1 of 2 came through/);
  expect(stdout).toContain('then it was interrupted');
  expect(outcomes().map(({ body }) => body)).toContainEqual({ score: 1, attempts: 1 });
  await until(() => isGone(pid), { what: 'The end of the environment' });
});

it('no environment outlives a command that is terminated', async () => {
  const child = startCommand(place([{ ...one, do: ['hang'] }]), [...words, '--attempts', '1', '--wait', '1h']);
  await until(() => existsSync(directory.join('pid')), { what: 'The attempt' });
  const pid = Number(readFileSync(directory.join('pid'), 'utf8'));
  child.kill('SIGTERM');
  expect((await child.ended).status).toBe(143);
  await until(() => isGone(pid), { what: 'The end of the environment' });
});

it('a score without a line’s end is heard once the environment has ended', async () => {
  const { status, values } = await runCommand(place([{ ...one, last: 'cut' }]), [...words, '--attempts', '1']);
  expect({ status, values }).toMatchObject({ status: 0, values: [{ attempts: [{ score: 1 }] }, {}] });
});

it('an environment that has given its score puts in order what it began', async () => {
  await runCommand(place([{ ...one, last: 'tidy' }]), [...words, '--attempts', '1']);
  expect(readFileSync(directory.join('tidied'), 'utf8')).toBe('yes');
});

it('an environment is not told what Backtalk is told, secrets among it', async () => {
  await runCommand(place([one]), [...words, '--attempts', '1']);
  const known = readFileSync(directory.join('known'), 'utf8');
  expect(known).toContain('PATH');
  expect(known).not.toContain('BACKTALK_');
});

it('a task is handed on as it stands in the file', async () => {
  await runCommand(place(['{"question":"x","scores":[1],"id":12345678901234567890}']), [...words, '--attempts', '1']);
  expect(readFileSync(directory.join('told'), 'utf8')).toContain('"id":12345678901234567890},"attempt":1}');
});

it('an outcome is told again to a gateway that starts anew', async () => {
  outcomeStatus = [503, 200];
  const { status, values } = await runCommand(place([one]), [...words, '--attempts', '1']);
  expect({ status, values }).toMatchObject({ status: 0, values: [{ late: 0 }, {}] });
  expect(outcomes()).toHaveLength(2);
});

it('a file that is no list of tasks is refused with the line', async () => {
  const refused = await runCommand(place(['\uFEFF', '', one, 'open the page']), words);
  expect(refused).toMatchObject({ status: 2, values: [{ error: { code: 'bad_argument' } }] });
  expect(JSON.stringify(refused.values)).toContain('line 4 is none');
  expect(await runCommand(place([]), words)).toMatchObject({ status: 2 });
  expect(await runCommand(place([one]), ['rollout', 'nowhere', ...words.slice(2)])).toMatchObject({ status: 2 });
});
