// The cards of a machine: index and memory. In: what nvidia-smi says, or a flag in its place (`8x80GB`). Out: cards in the
// driver's order; or one line that says why there are none to plan with.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { environmentOf } from '@backtalk/kit';
import { z } from 'zod';
import { deployErrors } from './errors.js';

export interface Card {
  /** As the driver counts. */
  readonly index: number;
  readonly bytes: number;
}

const mebibyte = 1024 * 1024;
const cardsMax = 64;

/** @param flag such as 8x80GB, 24GB, or 2x24GB,1x80GB */
export function cardsOfFlag(flag: string): readonly Card[] {
  const kinds = flag.split(',').map((kind) => /^(?:(\d{1,2})x)?(\d{1,5}(?:\.\d+)?)GB$/i.exec(kind.trim()));
  const cards = kinds.flatMap((kind) => {
    const [, count = '1', gigabytes = '0'] = kind ?? [];
    return kind === null ? [] : Array.from({ length: Number(count) }, () => Number(gigabytes) * 1e9);
  });
  const isFit = !kinds.includes(null) && cards.length > 0 && cards.length <= cardsMax && !cards.includes(0);
  if (isFit) return cards.map((bytes, index) => ({ index, bytes }));
  throw deployErrors.badOption({ option: 'gpus', value: flag, wanted: 'cards such as 8x80GB or 2x24GB,1x80GB' });
}

/** What `nvidia-smi --query-gpu=index,memory.total --format=csv` prints. */
function cardsOfCsv(csv: string): readonly Card[] {
  const [, ...rows] = csv.trim().split('\n');
  return rows.flatMap((row) => {
    const [, index, mebibytes] = /^\s*(\d+)\s*,\s*(\d+)\s*MiB\s*$/.exec(row) ?? [];
    return mebibytes === undefined ? [] : [{ index: Number(index), bytes: Number(mebibytes) * mebibyte }];
  });
}

const run = promisify(execFile);
const answersWithinMs = 30_000;
const query = ['--query-gpu=index,memory.total', '--format=csv'];
const instead = '--gpus 8x80GB --dry-run plans for cards that are not here';

/** Those that CUDA_VISIBLE_DEVICES leaves, where it names them by their numbers. */
export async function cardsHere(
  environment: Readonly<Record<string, string>> = environmentOf(['PATH', 'CUDA_VISIBLE_DEVICES']),
): Promise<readonly Card[]> {
  const csv = await run('nvidia-smi', query, { timeout: answersWithinMs, env: environment }).then(
    ({ stdout }) => stdout,
    (error: unknown) => {
      const isGone = z.object({ code: z.literal('ENOENT') }).safeParse(error).success;
      const why = isGone ? 'nvidia-smi is not here' : 'nvidia-smi does not say which cards there are';
      throw deployErrors.boxRefused({ why: `${why} (${instead})` });
    },
  );
  const all = cardsOfCsv(csv);
  const visible = environment['CUDA_VISIBLE_DEVICES'];
  const cards =
    visible === undefined ? all : visible.split(',').flatMap((name) => all.filter(({ index }) => name === `${index}`));
  if (cards.length > 0) return cards;
  const none = visible === undefined ? 'nvidia-smi names no card' : `CUDA_VISIBLE_DEVICES=${visible} leaves no card`;
  throw deployErrors.boxRefused({ why: `${none} (${instead})` });
}
