// A long run made again: so many versions of a made model, each a real step from the one before; then the files of all of them are deleted,
// and `backtalk rebuild` of the last has to make every one again. A blob's name is the hash of its bytes, so a version whose files are there
// again under their old names is the same byte for byte.
import { folderBlobStore } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { WeightsManifest } from '@backtalk/proto/weights';
import { tmpdir } from 'node:os';
import { startCrowd } from '../loop/crowd.js';
import { LogBook } from '../loop/fact-log.js';
import { settleLearning } from '../loop/learning-switch.js';
import type { TestMachine } from '../loop/machine.js';
import { MadeModel } from '../loop/made-model.js';
import { runCommand, valuesIn } from '../operations/run-command.js';
import type { Benchmark, BenchmarkContext, Measured } from './benchmark.js';
import { benchErrors } from './errors.js';

const versionsWanted = 50;
const learningMs = 3_600_000;
const settlingMs = 300_000;
const recipe = 'effective=2,effectiveMin=2,anchorsPerEffective=0,answerTokensMax=16,rehearsalSteps=0';

interface Rebuilt {
  readonly version: string;
  readonly state: string;
  readonly made: number;
  readonly detail: string;
}

export const versionRebuild: Benchmark = {
  name: 'rebuild',
  about: `${String(versionsWanted)} versions made again from the log, byte for byte`,
  run: async (context) => {
    const model = new MadeModel('qwen3', 4_096);
    try {
      const environment = { trainer: { BACKTALK_RECIPE_SET: recipe } };
      const options = { engine: 'builtin', training: 'real', base: model.base(), environment } as const;
      return await context.machine(options, (machine) => measureRebuild(context, machine));
    } finally {
      model.remove();
    }
  },
};

async function measureRebuild(context: BenchmarkContext, machine: TestMachine): Promise<Measured> {
  const book = await LogBook.open(machine);
  try {
    await learn(context, machine, book);
    const { trained } = await book.read();
    const last = trained.at(-1)?.message.version ?? '';
    const blobs = folderBlobStore(machine.data.blobs);
    const files = new Map<string, string[]>();
    for (const { message } of trained) {
      const { adapter, trainingState } = WeightsManifest.decode(await blobs.get(message.manifestDigest));
      files.set(
        message.version,
        [...adapter, ...trainingState].map(({ digest }) => digest),
      );
    }
    for (const digest of [...files.values()].flat()) await blobs.delete(digest);
    context.say(`${last} and all before it are made again`);
    const startedAt = performance.now();
    const ran = await runCommand(['--data', machine.folder, 'rebuild', last, '--json'], { folder: tmpdir() });
    const seconds = (performance.now() - startedAt) / 1_000;
    const [rebuilt] = valuesIn<Rebuilt>(ran);
    if (rebuilt?.state === undefined)
      throw benchErrors.programFailed({ program: 'rebuild', output: ran.stderr.trim() });
    let equal = 0;
    for (const digests of files.values())
      if ((await Promise.all(digests.map((digest) => blobs.has(digest)))).every(Boolean)) equal += 1;
    return {
      figures: [
        { name: 'versions made again', unit: '', values: [rebuilt.made], aim: { atLeast: versionsWanted } },
        { name: 'of them the same byte for byte', unit: '', values: [equal], aim: { atLeast: trained.length } },
        {
          name: 'a version, its step and its reading of the log',
          unit: 's',
          values: [seconds / Math.max(1, rebuilt.made)],
        },
      ],
      notes: [
        `${last}: ${rebuilt.state}${rebuilt.detail === '' ? '' : `, ${rebuilt.detail}`}; a made model with random weights, adapter and optimiser's state of every version deleted before`,
      ],
    };
  } finally {
    await book.close();
  }
}

async function learn({ say }: BenchmarkContext, machine: TestMachine, book: LogBook): Promise<void> {
  const crowd = startCrowd({ gateway: machine.gateway, seed: 50, clients: 2, corrects: 1, maxTokens: 16 });
  const isLong = async () => {
    const { length } = (await book.read()).trained;
    say(`${String(length)} of ${String(versionsWanted)} versions`);
    return length >= versionsWanted;
  };
  await until(isLong, { what: 'So many versions', timeoutMs: learningMs, everyMs: 2_000 });
  await crowd.stop();
  await settleLearning(machine, book, settlingMs);
}
