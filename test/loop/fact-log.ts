// All that the log holds, read once and kept by fact, for the auditor and for tests that look at single turns.
import {
  deadLetters,
  defineErrors,
  FactReader,
  folderBlobStore,
  kvBucket,
  TurnLog,
  type Broker,
  type StoredFact,
} from '@backtalk/kit';
import { Routes } from '@backtalk/proto/weights';
import { haveSettledAll } from '@backtalk/kit/testing';
import type { TestMachine } from './machine.js';

export interface FactLog {
  readonly opened: readonly StoredFact<'turnOpened'>[];
  readonly completed: readonly StoredFact<'turnCompleted'>[];
  readonly continued: readonly StoredFact<'turnContinued'>[];
  readonly judged: readonly StoredFact<'turnJudged'>[];
  readonly batches: readonly StoredFact<'batchClosed'>[];
  readonly trained: readonly StoredFact<'weightsTrained'>[];
  readonly staged: readonly StoredFact<'weightsStaged'>[];
  readonly routes: Routes | undefined;
  readonly deadLetters: number;
}

const logErrors = defineErrors('test-log', {
  turnGone: { code: 'turn_gone', retry: 'never', message: (p: { turn: string }) => `The log does not hold ${p.turn}.` },
});

/** Reads the log of one machine, as often as a test likes. */
export class LogBook {
  private constructor(
    private readonly broker: Broker,
    readonly reader: FactReader,
  ) {}

  static async open(machine: TestMachine): Promise<LogBook> {
    const broker = await machine.broker();
    return new LogBook(broker, new FactReader(broker, folderBlobStore(machine.data.blobs)));
  }

  async read(): Promise<FactLog> {
    const { reader, broker } = this;
    const all = <F extends Parameters<FactReader['read']>[0][number]>(name: F) => collect(reader.read([name]));
    const [opened, completed, continued, judged, batches, trained, staged] = await Promise.all([
      all('turnOpened'),
      all('turnCompleted'),
      all('turnContinued'),
      all('turnJudged'),
      all('batchClosed'),
      all('weightsTrained'),
      all('weightsStaged'),
    ]);
    const routes = await kvBucket(broker, 'routes', Routes).get('backtalk');
    const dead = await deadLetters(broker).count();
    return { opened, completed, continued, judged, batches, trained, staged, routes: routes?.value, deadLetters: dead };
  }

  /** Messages, tools and template arguments of a turn, as the trainer reads them; nothing until it is in the log. */
  async conversation(turn: string) {
    const opened = (await this.reader.last('turnOpened', { turn }))?.message;
    return opened && new TurnLog(this.reader).conversation(opened, (gone) => logErrors.turnGone({ turn: gone }));
  }

  batches(): Promise<StoredFact<'batchClosed'>[]> {
    return collect(this.reader.read(['batchClosed']));
  }

  /** Version that answers now; the base when nothing is routed. */
  async stable(): Promise<string> {
    return (await kvBucket(this.broker, 'routes', Routes).get('backtalk'))?.value.stable ?? 'backtalk-v0';
  }

  /** Whether collector and judge have taken in all turns that are in the log. */
  async isTakenIn(): Promise<boolean> {
    const consumers = await this.broker.jsm.consumers.list('TURNS').next();
    const names = consumers.map(({ name }) => name).filter((name) => /^(?:collector|judge)_/.test(name));
    return haveSettledAll(this.broker, 'TURNS', names);
  }

  async close(): Promise<void> {
    await this.broker.close();
  }
}

async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const value of values) collected.push(value);
  return collected;
}
