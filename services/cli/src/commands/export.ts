// `export`: turns, judgements or batches as JSON lines, on standard output or into a file.
import type { WriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { once } from 'node:events';
import { FactReader, TurnLog, type StoredFact } from '@backtalk/kit';
import {
  BatchClosed,
  TurnCompleted,
  TurnContinued,
  TurnJudged,
  TurnOpened,
  WeightsStaged,
  WeightsTrained,
} from '@backtalk/proto/facts';
import { withBroker } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { conversationOf } from '../conversation.js';

export const exportKinds = ['turns', 'judgements', 'batches'] as const;
export type ExportKind = (typeof exportKinds)[number];

const factsOf = {
  turns: ['turnOpened', 'turnCompleted', 'turnContinued'],
  judgements: ['turnJudged'],
  batches: ['batchClosed', 'weightsTrained', 'weightsStaged'],
} as const;

type Exported = (typeof factsOf)[ExportKind][number];

function body(fact: StoredFact<Exported>): unknown {
  switch (fact.name) {
    case 'turnOpened':
      return TurnOpened.toJSON({ ...fact.message, conversation: undefined });
    case 'turnCompleted':
      return TurnCompleted.toJSON(fact.message);
    case 'turnContinued':
      return TurnContinued.toJSON(fact.message);
    case 'turnJudged':
      return TurnJudged.toJSON(fact.message);
    case 'batchClosed':
      return BatchClosed.toJSON(fact.message);
    case 'weightsTrained':
      return WeightsTrained.toJSON(fact.message);
    case 'weightsStaged':
      return WeightsStaged.toJSON(fact.message);
  }
}

/** For its owner alone, also where a file of that name was there that others could read. */
async function privateFile(path: string): Promise<WriteStream> {
  const file = await open(path, 'w', 0o600);
  await file.chmod(0o600);
  return file.createWriteStream();
}

export async function exportFacts(
  { connection, output, signal }: CommandContext,
  kind: ExportKind,
  file: string | undefined,
): Promise<void> {
  const sink = file === undefined ? process.stdout : await privateFile(file);
  let count = 0;
  await withBroker(connection, async (broker, blobs) => {
    const reader = new FactReader(broker, blobs);
    const log = new TurnLog(reader);
    const names: readonly Exported[] = factsOf[kind];
    for await (const fact of reader.read(names, { signal })) {
      const line = {
        fact: fact.name,
        sequence: fact.sequence,
        time: new Date(fact.timeMs).toISOString(),
        body: body(fact),
        ...(fact.name === 'turnOpened' ? { conversation: await conversationOf(log, fact.message) } : {}),
      };
      if (!sink.write(`${JSON.stringify(line)}\n`)) await once(sink, 'drain');
      count += 1;
    }
  });
  if (sink !== process.stdout) {
    sink.end();
    await once(sink, 'finish');
  }
  output.complain(`${String(count)} facts exported${file === undefined ? '' : ` to ${file}`}.`);
}
