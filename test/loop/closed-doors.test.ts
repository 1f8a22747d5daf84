// What another user of the machine finds at the ports of the stores of `npm start`, and in its list of processes.
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { loadSecrets, openDataFolder } from '@backtalk/deploy';
import { TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCommand } from '../operations/run-command.js';
import { metric } from './controls.js';
import { startTestMachine, type TestMachine } from './machine.js';
import { secretsIn, secretsOf } from './secrets.js';
import { ask, type Message } from './talk.js';

const folder = new TemporaryDirectory('closed-doors');
const answerWithinMs = 5_000;
let before: ReturnType<typeof loadSecrets>;
let machine: TestMachine;

/** A folder as the release before left it, whose stores asked nothing of those on the machine. */
beforeAll(async () => {
  const data = openDataFolder(folder.join('data'));
  before = loadSecrets(data.path);
  const { hashSecret, passwords, engineKey, judgeEngineKey, callTokens } = before;
  writeFileSync(data.secrets, JSON.stringify({ hashSecret, passwords, engineKey, judgeEngineKey, callTokens }));
  machine = await startTestMachine({ engine: 'stand-in', training: 'stand-in', folder: data.path });
});

afterAll(async () => {
  await machine?.stop();
  folder.remove();
});

async function saysTo(port: number, words: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' });
  try {
    socket.write(words);
    const [answer] = (await once(socket, 'data', { signal: AbortSignal.timeout(answerWithinMs) })) as [Buffer];
    return answer.toString();
  } finally {
    socket.destroy();
  }
}

/** Of every process of this machine, as any user of it may read them. */
function argumentLists(): string {
  const lists = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      } catch {
        // It has ended since.
        return '';
      }
    });
  return lists.join('\n');
}

it('a data folder of the release before starts, with the secrets that it had and those that it lacked', () => {
  const { valkeyPassword, natsMonitor, ...others } = loadSecrets(machine.data.path);
  expect(before).toMatchObject(others);
  expect(new Set([valkeyPassword, natsMonitor, before.valkeyPassword, before.natsMonitor]).size).toBe(4);
  const { secrets, connection, natsConfig, valkeyConfig } = machine.data;
  for (const file of [secrets, connection, natsConfig, valkeyConfig])
    expect(statSync(file).mode & 0o777, file).toBe(0o600);
});

it('Valkey answers nothing to who has no password', async () => {
  const { valkey } = machine.ports;
  expect(await saysTo(valkey, 'PING\r\n')).toMatch(/^-NOAUTH /);
  expect(await saysTo(valkey, 'AUTH wrong-wrong-wrong\r\n')).toMatch(/^-WRONGPASS /);
  const { password } = new URL(machine.valkey);
  expect(await saysTo(valkey, `AUTH ${password}\r\n`)).toBe('+OK\r\n');
});

it('the broker’s monitor has no page for who does not know its path', async () => {
  const at = `http://127.0.0.1:${String(machine.ports.natsMonitor)}`;
  const status = async (path: string) =>
    (await fetch(`${at}${path}`, { signal: AbortSignal.timeout(answerWithinMs) })).status;
  for (const page of ['', 'healthz', 'varz', 'connz', 'jsz?config=true', 'subsz', 'accountz', 'stacksz', 'debug/vars'])
    expect(await status(`/${page}`), page).toBe(404);
  expect(await status(`/${loadSecrets(machine.data.path).natsMonitor}/healthz`)).toBe(200);
});

it('a machine with passwords links turns, knows the room of its broker, and commands find nothing wrong', async () => {
  const asked: Message[] = [{ role: 'user', content: 'Why is the sky blue?' }];
  const { text } = await ask(machine.gateway, { messages: asked });
  const messages: Message[] = [...asked, { role: 'assistant', content: text }, { role: 'user', content: 'Shorter.' }];
  await ask(machine.gateway, { messages });
  const linked = () => metric(machine, 'collector', 'backtalk_collector_turns_linked_total');
  const roomMax = () => metric(machine, 'collector', 'backtalk_collector_broker_bytes_max', 'storage');
  await until(async () => (await roomMax()) > 0, { what: 'The bound of the broker', timeoutMs: 60_000 });
  await until(async () => (await linked()) > 0, { what: 'A linked turn', timeoutMs: 60_000 });
  for (const command of ['status', 'doctor']) {
    const ran = await runCommand(['--data', machine.data.path, command], { folder: folder.path });
    expect(ran, command).toMatchObject({ status: 0, stderr: '' });
  }
});

it('no secret stands in the argument list of a process or in a log', () => {
  const secrets = secretsOf(machine);
  const names = [...secrets.keys()];
  expect(names).toEqual(
    expect.arrayContaining(['file valkeyPassword', 'file natsMonitor', 'gateway BACKTALK_VALKEY_URL']),
  );
  const lists = argumentLists();
  expect(lists.includes(machine.data.natsConfig)).toBe(true);
  // Valkey puts a title of its own in place of its list, once it has read it.
  const started = [...machine.specs.values()].flatMap(({ args }) => args).join('\n');
  expect(started).toContain(machine.data.valkeyConfig);
  expect(secretsIn(`${lists}\n${started}`, secrets)).toEqual([]);
  expect(secretsIn(machine.logs(), secrets)).toEqual([]);
});
