import { FactPublisher, folderBlobStore, sweepPayloads, type BlobStore } from '@backtalk/kit';
import { collect, startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import { BatchClosed, TurnOpened } from '@backtalk/proto/facts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deletePolicyFacts, deleteRows, type LogTools } from './delete-rows.js';
import { createOutput } from './output.js';
import { payloadsOf, turnsOf } from './person-facts.js';

const directory = new TemporaryDirectory('delete-rows');
const blobs = folderBlobStore(directory.path);
const person = { tenant: 'acme', user: 'ann' };
const policy = 'backtalk';
const large = 'x'.repeat(1_000_000);
let nats: TestNats;
let tools: LogTools;

const refuse = () => Promise.reject(new Error('The store is away.'));
const away: BlobStore = { put: refuse, get: refuse, has: refuse, list: () => blobs.list(), delete: refuse };

beforeAll(async () => {
  nats = await startNats();
  const broker = await nats.connect('cli');
  const output = createOutput(true);
  tools = { broker, blobs: away, output, signal: new AbortController().signal };
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

const left = async () => (await collect(blobs.list())).length;

describe('facts that are deleted with their payloads', () => {
  it('a payload of a turn whose deletion broke off is swept, though its fact tells of it no more', async () => {
    const turn = TurnOpened.fromPartial({ ...person, policy, turn: 't1', declaredSession: large });
    await new FactPublisher(await nats.connect('gateway'), { blobs }).publish('turnOpened', turn);
    const { rows } = await turnsOf(tools, person);
    await expect(deleteRows(tools, rows)).rejects.toThrow('The store is away.');
    expect([await left(), (await turnsOf(tools, person)).rows]).toEqual([1, []]);
    await sweepPayloads(tools.broker, blobs, 0);
    expect(await left()).toBe(0);
  });

  it('a payload of a policy whose deletion broke off is swept, though its fact tells of it no more', async () => {
    const batch = BatchClosed.fromPartial({ policy, number: 1, why: large });
    const trainer = new FactPublisher(await nats.connect('trainer'), { blobs });
    const { sequence } = await trainer.publish('batchClosed', batch, { expectSequence: 0 });
    await expect(deletePolicyFacts(tools, [sequence], await payloadsOf(tools, policy))).rejects.toThrow();
    expect([await left(), await payloadsOf(tools, policy)]).toEqual([1, []]);
    await sweepPayloads(tools.broker, blobs, 0);
    expect(await left()).toBe(0);
  });
});
