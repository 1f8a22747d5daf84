// Every command of `npx backtalk` as a person runs it, against one machine that has learned: for people and with --json.
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadSecrets } from '@backtalk/deploy';
import { sha256Hex } from '@backtalk/kit';
import { TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { render } from '../chart/helm.js';
import { podsOf } from '../chart/pods.js';
import { startCrowd } from '../loop/crowd.js';
import { LogBook } from '../loop/fact-log.js';
import { settleLearning } from '../loop/learning-switch.js';
import { root, startTestMachine, type TestMachine } from '../loop/machine.js';
import { runCommand, valuesIn, type Ran } from './run-command.js';

const directory = new TemporaryDirectory('commands');
let machine: TestMachine;
let book: LogBook;

type Value = Readonly<Record<string, unknown>>;

const run = (words: readonly string[], input?: string, environment: Record<string, string> = {}): Promise<Ran> =>
  runCommand(words, { folder: directory.path, input, environment });

/** For people. */
const backtalk = (words: readonly string[], input?: string) => run(['--data', machine.folder, ...words], input);

/** With --json, which may stand behind the command as well. */
async function values(words: readonly string[], input?: string): Promise<{ status: number | null; values: Value[] }> {
  const ran = await backtalk([...words, '--json'], input);
  return { status: ran.status, values: valuesIn<Value>(ran) };
}

beforeAll(async () => {
  machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    environment: { trainer: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' } },
  });
  book = await LogBook.open(machine);
  const crowd = startCrowd({ gateway: machine.gateway, seed: 8, clients: 3, corrects: 1 });
  await until(async () => (await book.read()).staged.length >= 6, { what: 'Three versions', timeoutMs: 60_000 });
  await crowd.stop();
  await settleLearning(machine, book, 60_000);
});

afterAll(async () => {
  await book?.close();
  await machine?.stop();
  directory.remove();
});

describe('wrong use', () => {
  it.each([
    [['begin']],
    [['status', '--bogus']],
    [['chat', '--max-tokens', '0']],
    [['lessons', 'add']],
    [['lessons', 'edit', 'lesson_1']],
    [['feedback']],
    [['feedback', 'turn_1']],
    [['feedback', 'turn_1', '--score', '5']],
    [['versions', 'one', 'too-many']],
    [['export', 'everything']],
    [['backup']],
    [['restore']],
    [['keys', 'revoke', 'nothing']],
    [['dead-letters', 'replay', 'first']],
    [['judge', 'eval', '--split', 'train']],
    [['simulate', '--sessions', '0']],
    [['streams', 'ensure']],
    [['turns', 'trim']],
  ])('%j is refused with status 2 and a sentence', async (words) => {
    const { status, stdout, stderr } = await backtalk(words);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(/\w/);
  });

  it('tells wrong use from a machine that does not run, which is status 3', async () => {
    const refused = await run(['--json', '--data', directory.path, 'status']);
    expect(refused.status).toBe(3);
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: 'not_running' } });
  });
});

describe('chat', () => {
  const input = 'What is a harbour?\n/good\n/nope\n/new\n';

  it('prints the answer, the version that gave it and its turn', async () => {
    const { status, stdout } = await backtalk(['chat', '--max-tokens', '8'], input);
    expect(status).toBe(0);
    expect(stdout).toMatch(/\(backtalk-v\d+, turn_\w+\)\nStored for turn_\w[^]*There is no \/nope\. \/good and \/bad/);
  });

  it('gives programs one object an answer', async () => {
    const { status, values: said } = await values(['chat', '--no-train'], 'What is a harbour?\n/quit\n');
    expect(status).toBe(0);
    expect(said).toEqual([
      {
        turn: expect.stringMatching(/^turn_/) as unknown,
        shown: 0,
        version: await book.stable(),
        text: expect.stringMatching(/\w/) as unknown,
      },
    ]);
    const stored = async () =>
      (await book.read()).completed.find(({ message }) => message.turn === said[0]?.['turn'])?.message;
    const turn = await until(stored, { what: 'The turn in the log' });
    expect(turn.untrainableReasons).toContain('opted_out');
  });
});

describe('feedback', () => {
  it('feedback is stored with a score, a comment or a correction', async () => {
    const [turn = ''] = (await book.read()).completed.map(({ message }) => message.turn);
    expect((await backtalk(['feedback', turn, '--score', '-1'])).stdout).toContain(`Stored for ${turn}.`);
    const words = ['feedback', turn, '--comment', 'Shorter, please.', '--correction', 'A place for ships.'];
    expect(await values(words)).toMatchObject({ status: 0, values: [{ turn_id: turn }] });
  });

  it('feedback on an unknown turn fails with the gateway’s reason', async () => {
    const unknown = await values(['feedback', 'turn_01a1ffd60b2077ec83cef0c2dd23dee2', '--score', '1']);
    expect(unknown).toMatchObject({ status: 1, values: [{ error: { code: 'refused' } }] });
  });
});

describe('lessons', () => {
  const lessonOf = async (id: unknown) => (await values(['lessons', 'show', String(id)])).values[0];

  it('a lesson is given, is in force while learning rests, is put in other words, retired and taken up again', async () => {
    const [added] = (await values(['lessons', 'add', 'Use', 'metric units.'])).values;
    const id = String(added?.['id']);
    expect(added).toMatchObject({ text: 'Use metric units.', state: 'active', pending: true });
    await until(async () => (await lessonOf(id))?.['pending'] === false, { what: 'The trainer’s word' });
    expect((await values(['lessons'])).values).toContainEqual(expect.objectContaining({ id, pending: false }));
    expect((await backtalk(['lessons', 'edit', id, 'Use metres.'])).stdout).toContain('“Use metres.”');
    expect((await backtalk(['lessons', 'retire', id])).stdout).toContain('No teacher is shown it');
    await until(async () => (await lessonOf(id))?.['pending'] === false, { what: 'The trainer’s word' });
    expect(await lessonOf(id)).toMatchObject({ text: 'Use metres.', state: 'retired', ended_by: 'person' });
    expect((await backtalk(['lessons', 'show', id])).stdout).toMatch(/state +retired: ended by its person/);
    expect((await values(['lessons', 'activate', id])).values).toMatchObject([{ state: 'active' }]);
    expect((await backtalk(['lessons', 'list'])).stdout).toContain(id);
  });

  it('says what is wrong with a lesson, and what its states are', async () => {
    const refused = await backtalk(['lessons', 'add', 'Be brief.<|im_end|>']);
    expect(refused.status).toBe(1);
    expect(refused.stderr).toContain('<|im_end|>');
    expect((await backtalk(['lessons', 'retire', 'never-was'])).stderr).toContain('No such lesson.');
    expect((await backtalk(['lessons', '--help'])).stdout).toMatch(/unteachable +this model does not learn it/);
  });
});

describe('status', () => {
  it('says what answers, that learning rests, and where turns are', async () => {
    const { status, stdout } = await backtalk(['status']);
    expect(status).toBe(0);
    expect(stdout).toContain(`backtalk answers with ${await book.stable()}`);
    expect(stdout).toContain('learning is PAUSED');
    const { values: told } = await values(['status']);
    const { opened } = await book.read();
    expect(told).toMatchObject([{ policy: 'backtalk', paused: true, facts: { turnOpened: opened.length } }]);
    expect(told[0]?.['parts']).toContainEqual(expect.objectContaining({ part: 'gateway', ready: true, why: '' }));
  });
});

describe('versions', () => {
  it('lists every version with its parent', async () => {
    const { trained } = await book.read();
    const names = trained.map(({ message }) => message.version);
    const { status, values: rows } = await values(['versions']);
    expect(status).toBe(0);
    expect(rows.map(({ version }) => version)).toEqual(names);
    expect(rows[0]).toMatchObject({ parent: 'backtalk-v0', measurements: { kl_step: 0.5 } });
    const { stdout } = await backtalk(['versions']);
    for (const name of names) expect(stdout).toContain(`\n${name} `);
  });

  it('shows from which words one was made', async () => {
    const { values: shown } = await values(['versions', 'backtalk-v1']);
    const people = await backtalk(['versions', 'backtalk-v1']);
    expect(shown).toMatchObject([{ version: 'backtalk-v1', parent: 'backtalk-v0' }]);
    const samples = shown[0]?.['samples'] as readonly { question: string; answerReplaced: boolean }[];
    expect(people.stdout).toContain('backtalk-v1: one step from backtalk-v0');
    for (const { question } of samples) expect(people.stdout).toContain(question.slice(0, 40));
    const replaced = people.stdout.split('\n      then ').map((text) => text.includes('      replaced  by'));
    expect([true, ...samples.slice(1).map((sample) => sample.answerReplaced)]).toEqual(replaced.slice(0, -1));
    const compared = shown[0]?.['compared'] as readonly { question: string; before: string; after: string }[];
    expect(compared.length).toBe(8);
    expect(people.stdout).toContain(`  ${compared[0]?.question ?? ''}\n      before    `);
  });

  it('refuses one that was never made', async () => {
    const unknown = await values(['versions', 'backtalk-v999']);
    expect(unknown).toMatchObject({ status: 1, values: [{ error: { code: 'nothing_found' } }] });
  });
});

describe('export', () => {
  it('writes turns with their whole conversation to standard output', async () => {
    const { opened, completed, continued } = await book.read();
    const { status, values: lines } = await values(['export', 'turns']);
    expect(status).toBe(0);
    expect(lines).toHaveLength(opened.length + completed.length + continued.length);
    const first = lines.find(({ fact }) => fact === 'turnOpened');
    expect(first).toMatchObject({ conversation: { messages: [{ role: 'user' }] } });
  });

  it.each([
    ['judgements', ['turnJudged']],
    ['batches', ['batchClosed', 'weightsTrained', 'weightsStaged']],
  ])('writes %s into a file, for its owner alone', async (kind, facts) => {
    const file = directory.join(`${kind}.jsonl`);
    writeFileSync(file, 'of an earlier export', { mode: 0o644 });
    const { status, stdout, stderr } = await backtalk(['export', kind, '--to', file]);
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(stderr).toContain(`${String(lines.length)} facts exported to ${file}`);
    expect(new Set(lines.map((line) => (JSON.parse(line) as Value)['fact']))).toEqual(new Set(facts));
  });
});

describe('pause and resume', () => {
  it('pause and resume switch learning, and say so', async () => {
    expect(await values(['resume'])).toEqual({ status: 0, values: [{ policy: 'backtalk', paused: false }] });
    expect((await backtalk(['status'])).stdout).toContain('learning is on');
    expect((await backtalk(['pause'])).stdout).toContain('backtalk does not learn until: npx backtalk resume');
    expect((await values(['status'])).values).toMatchObject([{ paused: true }]);
    expect((await backtalk(['resume'])).stdout).toContain('backtalk learns again');
    expect((await values(['pause'])).values).toEqual([{ policy: 'backtalk', paused: true }]);
  });
});

describe('dead-letters', () => {
  it('lists none where every fact was handled', async () => {
    expect((await backtalk(['dead-letters'])).stdout).toContain('No dead letters');
    expect(await values(['dead-letters', 'replay', 'all'])).toEqual({ status: 0, values: [] });
  });

  it('names a fact that no service could read, and gives it to its service again', async () => {
    const [continued] = (await book.read()).continued;
    const admin = await machine.broker();
    await admin.js.publish(continued?.subject ?? '', Buffer.from('no fact'));
    await admin.close();
    const letters = async () => (await values(['dead-letters', 'list'])).values;
    const [letter] = await until(async () => ((await letters()).length > 0 ? letters() : false), {
      what: 'A dead letter',
      timeoutMs: 60_000,
    });
    expect((await backtalk(['dead-letters'])).stdout).toMatch(/fact_undecodable|undecodable/);
    const number = String(letter?.['sequence']);
    expect((await values(['dead-letters', 'replay', number])).values).toEqual([{ replayed: Number(number) }]);
    expect(await values(['dead-letters', 'replay', '999999'])).toMatchObject({ status: 1 });
  });
});

describe('backup, restore and streams', () => {
  const asAdmin = () => {
    const { passwords } = loadSecrets(machine.data.path);
    return {
      BACKTALK_NATS_URL: `nats://127.0.0.1:${String(machine.ports.nats)}`,
      BACKTALK_NATS_USER: 'admin',
      BACKTALK_NATS_PASSWORD: passwords.admin,
      BACKTALK_BLOB_STORE: `folder:${machine.data.blobs}`,
    };
  };

  it('copies the machine into a folder that one command goes on from', async () => {
    const folder = directory.join('copy');
    const { status, stdout } = await backtalk(['backup', '--to', folder]);
    expect(status).toBe(0);
    expect(stdout).toContain(`npm start -- --data NEW --restore ${folder}`);
    expect(existsSync(join(folder, 'manifest.json'))).toBe(true);
    const again = await values(['backup', '--to', directory.join('another')]);
    expect(again).toMatchObject({ status: 0, values: [{ format: 1, served: { baseModel: 'smollm2-135m-wishes' } }] });
  });

  it('refuses to restore over what has been used', async () => {
    const refused = await run(['--json', 'restore', '--from', directory.join('copy')], '', asAdmin());
    expect(refused.status).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: 'restore_not_empty' } });
  });

  it('finds every stream as it should be', async () => {
    const environment = { ...asAdmin(), BACKTALK_TURNS_BYTES_MAX: '800000000' };
    const people = await run(['streams', 'ensure'], '', environment);
    expect(people).toMatchObject({ status: 0 });
    expect(people.stdout).toMatch(/TURNS +nothing/);
    const programs = await run(['--json', 'streams', 'ensure'], '', environment);
    expect(JSON.parse(programs.stdout)).toMatchObject({ replicas: 1, strays: 0 });
  });
});

describe('judge eval', () => {
  it('measures the judge with the running engine, on the labelled set and on turns of one’s own', async () => {
    const { status, values: rows } = await values(['judge', 'eval', '--split', 'dev']);
    expect([status, rows[0]?.['split'], typeof rows[0]?.['balancedAccuracy']]).toEqual([0, 'dev', 'number']);
    const own = directory.join('turns.jsonl');
    writeFileSync(own, '{"context":[],"answer":"A","next":{"role":"user","content":"No!"},"label":-1,"hint":null}');
    expect((await backtalk(['judge', 'eval', '--file', own])).stdout).toContain('balanced accuracy');
  });
});

describe('simulate', () => {
  const unmeasured = ['simulate', '--sessions', '2', '--questions', '0', '--max-tokens', '8'];

  it('runs from a checkout, and hands options and the folder on', async () => {
    expect((await backtalk(['simulate', '--help'])).stdout).toContain('--until-version <n>');
    const { status, stdout } = await backtalk(unmeasured);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^2 sessions, \d+ answers/m);
    const { values: events } = await values(unmeasured);
    expect(events).toMatchObject([{ event: 'done', counts: { sessions: 2 } }]);
  });
});

describe('the runbook', () => {
  const text = readFileSync(join(root, 'deploy', 'dashboards', 'RUNBOOK.md'), 'utf8');
  const commands = [...new Set([...text.matchAll(/`npx backtalk ([^`]+)`/g)].map(([, command = '']) => command))];
  const key = 'sk-of-the-runbook-test';
  const named: Readonly<Record<string, string>> = {
    '<name>': 'backtalk-v1',
    '<key>': sha256Hex(Buffer.from(key)).slice(0, 16),
  };
  // A rollback and a burn have tests of their own: each takes away a version. Keys come last: a gateway that read of one stays closed without it.
  const repeatable = commands
    .filter((command) => command !== 'rollback' && command !== 'versions burn <name>')
    .toSorted((a, b) => Number(a.includes('<key>')) - Number(b.includes('<key>')));

  /** As the pod for commands has it: the chart's variables, and no data folder. */
  function podEnvironment(): Record<string, string> {
    const { passwords, hashSecret } = loadSecrets(machine.data.path);
    return {
      BACKTALK_NATS_URL: `nats://127.0.0.1:${String(machine.ports.nats)}`,
      BACKTALK_NATS_USER: 'cli',
      BACKTALK_NATS_PASSWORD: passwords.cli,
      BACKTALK_HASH_SECRET: hashSecret,
      BACKTALK_CLI_TO_PUBLISHER_TOKEN: machine.wire.tokens.cliToPublisher ?? '',
      BACKTALK_BLOB_STORE: `folder:${machine.data.blobs}`,
      BACKTALK_ENDPOINT: `${machine.gateway}/v1`,
      BACKTALK_POLICY: 'backtalk',
      BACKTALK_BASE_MODEL: 'smollm2-135m-wishes',
    };
  }

  async function succeeds(command: string, before: readonly string[], environment: Record<string, string>) {
    const ofKey = command.includes('<key>');
    const adds = [...before, 'keys', 'add', '--user', 'runbook'];
    if (ofKey) await run(adds, '', { ...environment, BACKTALK_NEW_KEY: key });
    const words = command.split(' ').map((word) => named[word] ?? word);
    expect(await run([...before, ...words], '', environment)).toMatchObject({ status: 0, stderr: '' });
  }

  it('the pod for commands has the variables with which the runbook’s commands are run here', () => {
    expect(repeatable.length).toBeGreaterThan(5);
    const pod = podsOf(render({ commands: { enabled: true } })).find(({ component }) => component === 'commands');
    const given = new Set(pod?.spec.containers.flatMap(({ env }) => env.map(({ name }) => name)));
    expect(Object.keys(podEnvironment()).filter((name) => !given.has(name))).toEqual([]);
  });

  it.each(repeatable)('the runbook’s `backtalk %s` succeeds as in the pod for commands', async (command) => {
    await succeeds(command, [], podEnvironment());
  });

  it.each(repeatable)('the runbook’s `npx backtalk %s` succeeds on one machine', async (command) => {
    await succeeds(command, ['--data', machine.folder], {});
  });

  it('the runbook’s `backtalk rollback` succeeds as in the pod for commands', async () => {
    expect(await run(['rollback'], '', podEnvironment())).toMatchObject({ status: 0 });
  });
});

describe('rollback', () => {
  it('puts the version before this one back and burns this one', async () => {
    const stable = await book.stable();
    const [first] = (await values(['rollback', '--why', 'a drill'])).values;
    expect(first).toMatchObject({ from: stable, to: await book.stable() });
    expect((await values(['versions'])).values).toContainEqual(
      expect.objectContaining({ version: stable, stage: 'burned', why: expect.stringContaining('a drill') as unknown }),
    );
    expect((await backtalk(['rollback', '--to', await book.stable()])).stdout).toContain('nothing is burned');
    expect((await backtalk(['versions', 'burn', 'backtalk-v1'])).stderr).toContain('v1 is no candidate');
    expect((await backtalk(['rollback', '--to', 'backtalk-v99'])).stderr).toContain('v99 cannot answer again');
  });
});

describe('keys', () => {
  it('keys of this machine are made, shown once, listed without themselves and revoked', async () => {
    const [{ id, key } = {}] = (await values(['keys', 'add', '--user', 'ann', '--requests-per-minute', '5'])).values;
    const { stdout } = await backtalk(['keys', 'list']);
    expect(stdout).toContain(String(id));
    expect(stdout).toContain('requestsPerMinute 5');
    expect(stdout).not.toContain(String(key));
    expect((await values(['keys'])).values).toMatchObject([{ id, user: 'ann' }]);
    expect((await backtalk(['keys', 'revoke', String(id)])).stdout).toContain('opens nothing any more');
    expect((await backtalk(['keys', 'add'])).stdout).toMatch(/^bt_\S{32}\n/);
  });
});
