// Stores that fill up, facts that nobody can handle, and a log that is read slower than it is written.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLogger } from '@backtalk/kit';
import { connectValkey } from '@backtalk/kit/valkey';
import { until } from '@backtalk/kit/testing';
import { metric, setEngine } from '../../loop/controls.js';
import type { TestMachine } from '../../loop/machine.js';
import { over, type Fault } from '../fault.js';
import { ensureStreams } from '../operator.js';

const mebibyte = 1024 * 1024;
/** In pieces: one answer of Valkey may take no longer than its client waits. */
const ballast = Array.from({ length: 28 }, (_, at) => `ballast-of-a-test-${String(at)}`);
const ballastBytes = 8 * mebibyte;

async function withValkey(machine: TestMachine, act: (client: ReturnType<typeof connectValkey>) => Promise<unknown>) {
  const client = connectValkey({
    url: machine.valkey,
    name: 'test',
    logger: createLogger({ service: 'test', level: 'silent' }),
  });
  try {
    await until(() => client.status === 'ready', { what: 'A connection to Valkey' });
    await act(client);
  } finally {
    client.disconnect();
  }
}

const heap = 'BALLAST';

async function fillBroker(machine: TestMachine): Promise<void> {
  const admin = await machine.broker();
  await admin.jsm.streams.add({ name: heap, subjects: ['ballast'] });
  for (let at = 0; at < 15; at += 1) await admin.js.publish('ballast', Buffer.alloc(7e6));
  await admin.close();
}

async function emptyBroker(machine: TestMachine): Promise<void> {
  const admin = await machine.broker();
  await admin.jsm.streams.delete(heap);
  await admin.close();
}

async function storedBytes(machine: TestMachine): Promise<number> {
  const admin = await machine.broker();
  const { storage } = await admin.jsm.getAccountInfo();
  await admin.close();
  return storage;
}

export const storeFaults: readonly Fault[] = [
  {
    fault: 'a fact that cannot be decoded is in the log',
    fires: [{ alert: 'BacktalkDeadLetters' }],
    break: async ({ machine }) => {
      const admin = await machine.broker();
      await admin.js.publish('backtalk.turn.continued.one.poison.turn_poison', Buffer.from('no fact'));
      await admin.close();
      return over;
    },
  },
  {
    fault: 'the log of turns may take little more than it holds; mended by `backtalk streams ensure`',
    fires: [{ alert: 'BacktalkStreamNearlyFull' }],
    break: async ({ machine }) => {
      const admin = await machine.broker();
      const { state } = await admin.jsm.streams.info('TURNS');
      await admin.close();
      await ensureStreams(machine, Math.ceil(state.bytes * 1.2));
      return () => ensureStreams(machine, 800 * mebibyte);
    },
  },
  {
    fault: 'the broker holds 105 MB more, and may store a sixth beyond that; mended by its old bound',
    fires: [{ alert: 'BacktalkBrokerNearlyFull', labels: { kind: 'storage' } }],
    break: async (scene) => {
      const { machine } = scene;
      await ensureStreams(machine, 64 * mebibyte);
      await fillBroker(machine);
      const file = join(machine.data.path, 'nats.conf');
      const before = readFileSync(file, 'utf8');
      const bytes = await storedBytes(machine);
      writeFileSync(
        file,
        before.replace('jetstream {', `jetstream {\n  max_file_store: ${String(Math.ceil(bytes * 1.17))}`),
      );
      scene.away('nats');
      await scene.back('nats');
      return async () => {
        writeFileSync(file, before);
        scene.away('nats');
        await scene.back('nats');
        await emptyBroker(machine);
        await ensureStreams(machine, 800 * mebibyte);
      };
    },
  },
  {
    fault: 'values of 224 MiB lie in a Valkey of 256',
    fires: [{ alert: 'BacktalkValkeyNearlyFull' }],
    break: async ({ machine }) => {
      await withValkey(machine, async (client) => {
        for (const key of ballast) await client.setrange(key, ballastBytes, 'x');
      });
      return () => withValkey(machine, (client) => client.unlink(ballast));
    },
  },
  {
    fault: 'valkey is away while twenty more clients talk',
    fires: [{ alert: 'BacktalkLinkingBehind' }],
    break: async (scene) => {
      const { machine } = scene;
      scene.away('valkey');
      await setEngine(machine.engine, { tokenMs: 0, answerTokens: 4 });
      scene.talk(20);
      const many = async () =>
        (await metric(machine, 'collector', 'backtalk_collector_facts_pending', 'turnOpened')) > 0;
      await until(many, { what: 'Facts that wait', timeoutMs: 60_000, everyMs: 250 });
      return async () => {
        await setEngine(machine.engine, { tokenMs: 50, answerTokens: 16 });
        await scene.hush();
        await scene.back('valkey');
      };
    },
  },
];
