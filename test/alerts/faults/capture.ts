// Turns that cannot be stored, or only beside the broker.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { until } from '@backtalk/kit/testing';
import { metric, setEngine } from '../../loop/controls.js';
import { over, type Fault } from '../fault.js';
import { keys, type Scene } from '../scene.js';

const kibibyte = 1024;

/** The broker is away, so that what is answered goes to the spool. */
async function spooling(scene: Scene): Promise<void> {
  scene.away('nats');
  const spools = async () => (await metric(scene.machine, 'gateway', 'backtalk_gateway_spool_bytes')) > 0;
  await until(spools, { what: 'The gateway spools', timeoutMs: 60_000, everyMs: 100 });
}

/** A record whose checksum holds, and whose message no release reads. */
function unreadableRecord(): Buffer {
  const head = Buffer.from(JSON.stringify({ name: 'turnOpened', traceparent: '' }));
  const headLength = Buffer.alloc(4);
  headLength.writeUInt32LE(head.length);
  const body = Buffer.concat([headLength, head, Buffer.alloc(64, 0xff)]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32LE(body.length);
  frame.writeUInt32LE(crc32(body), 4);
  return Buffer.concat([frame, body]);
}

/** How full the gateway's spool is, from 0 to 1. */
async function fillOf({ machine }: Scene): Promise<number> {
  const held = await metric(machine, 'gateway', 'backtalk_gateway_spool_bytes');
  return held / (await metric(machine, 'gateway', 'backtalk_gateway_spool_bytes_max'));
}

export const captureFaults: readonly Fault[] = [
  {
    fault: 'the broker is away, and the gateway’s disk takes no more than 1 KiB a file',
    fires: [{ alert: 'BacktalkSpoolDiskFailed' }, { alert: 'BacktalkTurnsNotStored' }],
    break: async (scene) => {
      await spooling(scene);
      scene.limitFiles('gateway', kibibyte);
      return async () => {
        scene.limitFiles('gateway');
        await scene.back('nats');
      };
    },
  },
  {
    fault: 'the broker is away while twenty more clients talk, and a spool may hold 2 MiB',
    fires: [{ alert: 'BacktalkSpoolNearlyFull' }],
    break: async (scene) => {
      await spooling(scene);
      await setEngine(scene.machine.engine, { tokenMs: 0, answerTokens: 16 });
      scene.talk(20);
      const fills = async () => (await fillOf(scene)) > 0.8;
      await until(fills, { what: 'The spool is nearly full', timeoutMs: 120_000, everyMs: 100 });
      return async () => {
        await setEngine(scene.machine.engine, { tokenMs: 50, answerTokens: 16 });
        await scene.hush();
        await scene.back('nats');
      };
    },
  },
  {
    fault: 'a byte flips in the spool while the gateway is down',
    fires: [{ alert: 'BacktalkSpoolUnreadable' }],
    break: async (scene) => {
      const { spool } = scene.machine.data;
      await spooling(scene);
      scene.away('gateway');
      const [name = ''] = readdirSync(spool).filter((file) => file.endsWith('.spool'));
      const bytes = readFileSync(join(spool, name));
      bytes[60] = (bytes[60] ?? 0) ^ 1;
      writeFileSync(join(spool, name), bytes);
      await scene.back('nats');
      await scene.back('gateway');
      return over;
    },
  },
  {
    fault: 'a record of another release lies in the spool',
    fires: [{ alert: 'BacktalkSpoolRejected' }],
    break: async (scene) => {
      scene.away('gateway');
      writeFileSync(join(scene.machine.data.spool, '000000000000.spool'), unreadableRecord());
      await scene.back('gateway');
      return over;
    },
  },
  {
    fault: 'a key has filled its share of the day and goes on asking',
    fires: [{ alert: 'BacktalkTurnsCapped' }],
    break: (scene) => {
      scene.talk(1, keys.capped);
      return () => scene.hush();
    },
  },
];
