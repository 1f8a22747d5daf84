// Attacks by the shape and the number of requests: each by one client with a valid key.
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { residentOf } from '../../bench/process-figures.js';
import { engineCounts, setEngine } from '../../loop/controls.js';
import { ask } from '../../loop/talk.js';
import type { Attack } from '../attack.js';
import { passed, send, statusesOf, type Reply } from '../scene.js';
import { bodies, chat, user, within } from './shapes.js';

const mebibyte = 2 ** 20;
const greeting = [user('hi')];

/** A chat request with a field of this many bytes of `piece`. */
function padded(bytes: number, piece: string): Buffer {
  const head = '{"model":"backtalk","messages":[{"role":"user","content":"hi"}],"x":[';
  const pieces = piece.repeat(Math.floor((bytes - head.length - 8) / piece.length));
  return Buffer.from(`${head}${pieces}0]}`);
}

const members = bodies(
  {
    name: 'many-members',
    about: 'bodies of almost 8 MiB of `{},`, four at a time',
    before: 'heap used up, the gateway ends',
  },
  { atOnce: 4, body: () => padded(8 * mebibyte - 64, '{},') },
);

const deep = bodies(
  {
    name: 'deep-nesting',
    about: 'bodies of 100,000 lists in each other, 20 at a time',
    before: 'refused',
  },
  { atOnce: 20, body: () => `{"model":"backtalk","messages":${'['.repeat(100_000)}${']'.repeat(100_000)}}` },
);

const manyMessages = bodies(
  {
    name: 'many-messages',
    about: 'bodies of 30,000 short messages, one after the other',
    before: 'every other client waits 5.2 s a body of 400,000',
  },
  {
    body: () => {
      const message = '{"role":"assistant","content":"a"},{"role":"user","content":"b"},';
      return `{"model":"backtalk","messages":[${message.repeat(15_000)}{"role":"user","content":"c"}]}`;
    },
  },
);

const bodyAtTheBound = bodies(
  {
    name: 'bodies-at-the-bound',
    about: 'tools of 48,000 members in 7 MiB, all that a body may have, one after the other',
    before: 'served; every other client waits 0.6 s a body',
  },
  {
    isServed: true,
    body: () => {
      const member = (at: number) => `"k${String(at)}${'y'.repeat(130)}":${String(at)}.5`;
      const parameters = Array.from({ length: 48_000 }, (_, at) => member(at)).join(',');
      const tool = `{"type":"function","function":{"name":"f","parameters":{${parameters}}}}`;
      return `{"model":"backtalk","messages":[{"role":"user","content":"hi"}],"tools":[${tool}]}`;
    },
  },
);

const toolArguments = bodies(
  {
    name: 'tool-arguments',
    about: "a tool call's arguments of 350,000 members in 1 MiB of text, one after the other",
    before: 'served; every other client waits 0.2 s a body',
  },
  {
    isServed: true,
    body: () => {
      const call = { id: 'a', type: 'function', function: { name: 'f', arguments: `[${'{},'.repeat(349_000)}{}]` } };
      const messages = [user('q'), { role: 'assistant', content: null, tool_calls: [call] }, user('hi')];
      return JSON.stringify({ model: 'backtalk', messages });
    },
  },
);

/** Announces a body of `length` bytes and sends its beginning; resolves when that is sent or was refused. */
function begun(
  port: number,
  path: string,
  length: number,
  first: Buffer,
  headers: Readonly<Record<string, string>>,
): Promise<Socket> {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${String(length)}\r\n${lines.join('')}\r\n`;
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const done = () => resolve(socket);
    socket.on('error', done);
    socket.on('close', done);
    socket.resume();
    socket.write(head);
    socket.write(first, done);
    setTimeout(done, 10_000).unref();
  });
}

const hoard: Attack = {
  name: 'hoarded-bodies',
  about: '60 connections with 15 MiB of feedback each, all but the last byte',
  before: '594 MB resident with 30 of them, and held; 60 end a pod of 768 MiB',
  on: 'keyed',
  run: async ({ machine, mallory, rounds }) => {
    const body = Buffer.alloc(15 * mebibyte, 'a');
    const port = machine.ports.endpoint;
    const begin = () => begun(port, '/v1/feedback', body.byteLength + 1, body, mallory);
    const seen = await rounds(async () => {
      const sockets = await Promise.all(Array.from({ length: 60 }, begin));
      const open = sockets.filter(({ destroyed }) => !destroyed).length;
      const { megabytes } = residentOf(machine.pid('gateway'));
      for (const socket of sockets) socket.destroy();
      return { megabytes, open };
    });
    const megabytes = Math.max(...seen.map((one) => one.megabytes));
    const open = Math.max(...seen.map((one) => one.open));
    return {
      held: megabytes < 400,
      now: `${megabytes.toFixed(0)} MB resident, ${String(open)} connections still open`,
    };
  },
};

const dribble: Attack = {
  name: 'dribbled-bodies',
  about: '200 bodies that send one byte every 200 ms',
  before: 'refused after 30 s, others not held',
  on: 'keyed',
  run: async ({ machine, mallory }) => {
    const first = Buffer.from('{"model":"backtalk","messages":[');
    const sockets = await Promise.all(
      Array.from({ length: 200 }, () => begun(machine.ports.endpoint, chat, 4_000, first, mallory)),
    );
    for (const socket of sockets) {
      const drip = setInterval(() => socket.write(' '), 200);
      socket.on('close', () => clearInterval(drip));
    }
    const closed = () => sockets.filter(({ destroyed }) => destroyed).length;
    await within(60_000, () => Promise.resolve(closed() === sockets.length));
    const left = sockets.length - closed();
    for (const socket of sockets) socket.destroy();
    return { held: left === 0, now: left === 0 ? 'all were closed by the gateway' : `${String(left)} are still open` };
  },
};

const badKeys: Attack = {
  name: 'bad-keys',
  about: 'wrong keys over 64 connections, 2,000 a second',
  before: 'refused',
  on: 'keyed',
  run: async ({ machine, rounds }) => {
    const clients = 64;
    const startedAt = performance.now();
    const headers = { authorization: 'Bearer sk-wrong' };
    const body = JSON.stringify({ model: 'backtalk', messages: greeting });
    const round = async () => {
      const pause = passed((clients / 2_000) * 1_000);
      const reply = await send(`${machine.gateway}${chat}`, { type: 'application/json', headers, body });
      await pause;
      return reply;
    };
    const replies = (await Promise.all(Array.from({ length: clients }, () => rounds(round)))).flat();
    const perSecond = (replies.length / (performance.now() - startedAt)) * 1_000;
    const all401 = replies.every(({ status }) => status === 401 || status === 429);
    return { held: all401, now: `${perSecond.toFixed(0)} a second: ${statusesOf(replies)}` };
  },
};

const leavers: Attack = {
  name: 'leaving-clients',
  about: '10,000 requests that are left at a random moment, 50 at a time, 1,000 a second',
  before: 'nothing leaks (seen with 2,000)',
  on: 'keyed',
  run: async (scene) => {
    const { machine, mallory } = scene;
    const files = () => readdirSync(`/proc/${String(machine.pid('gateway'))}/fd`).length;
    const before = files();
    let count = 0;
    const client = async () => {
      for (const enough = count + 200; count < enough;) {
        count += 1;
        const pause = passed(50);
        const signal = AbortSignal.timeout(Math.floor(Math.random() * 20));
        const messages = [{ role: 'user' as const, content: `a long story, the ${String(count)}th` }];
        await ask(machine.gateway, { messages, headers: mallory, signal });
        await pause;
      }
    };
    while (count < 10_000) await scene.rounds(() => Promise.all(Array.from({ length: 50 }, client)));
    const idle = async () => (await engineCounts(machine.engine)).running <= 1 && files() <= before + 150;
    const held = await within(30_000, idle);
    return { held, now: `files open: ${String(before)} before, ${String(files())} after` };
  },
};

const heldStreams: Attack = {
  name: 'held-streams',
  about: '300 streams at once, 40 tokens each, 20 a second',
  before: 'served; others wait in the engine behind them, 1.5 s and more',
  on: 'keyed',
  prepare: async ({ machine }) => {
    await setEngine(machine.engine, { tokenMs: 50, answerTokens: 40 });
    return () => setEngine(machine.engine, { tokenMs: 2, answerTokens: 12 });
  },
  run: async ({ machine, mallory, rounds }) => {
    const story = async (at: number) => {
      const body = JSON.stringify({ model: 'backtalk', stream: true, messages: [user(`story ${String(at)}`)] });
      const reply = await send(`${machine.gateway}${chat}`, { type: 'application/json', headers: mallory, body });
      // As long as the others are answered.
      if (reply.status === 429) await passed(2_000);
      return reply;
    };
    const tellers = Array.from({ length: 300 }, (_, at) => rounds(() => story(at)));
    const replies = (await Promise.all(tellers)).flat();
    const isWhole = ({ status, text }: Reply) => status === 429 || text.endsWith('data: [DONE]\n\n');
    return { held: replies.every(isWhole), now: statusesOf(replies) };
  },
};

export const bodyAttacks: readonly Attack[] = [
  members,
  deep,
  manyMessages,
  bodyAtTheBound,
  toolArguments,
  hoard,
  dribble,
  badKeys,
  leavers,
  heldStreams,
];
