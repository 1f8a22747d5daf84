import { chmodSync, writeFileSync } from 'node:fs';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { cardsHere, cardsOfFlag } from './box-cards.js';

const directory = new TemporaryDirectory('box-cards');
afterAll(() => {
  directory.remove();
});

/** What stands in for the driver's program: it prints what is given, if it is asked for index and memory. */
function driverSays(lines: readonly string[]): string {
  const program = directory.join('nvidia-smi');
  const asked = '"$1 $2" = "--query-gpu=index,memory.total --format=csv"';
  writeFileSync(program, `#!/bin/sh\n[ ${asked} ] || exit 2\ncat <<'END'\n${lines.join('\n')}\nEND\n`);
  chmodSync(program, 0o755);
  return `${directory.join('.')}:/usr/bin:/bin`;
}

const two = ['index, memory.total [MiB]', '0, 81559 MiB', '1, 24564 MiB'];

describe('the cards of a machine', () => {
  it('cards are what nvidia-smi says', async () => {
    const path = driverSays(two);
    expect(await cardsHere({ PATH: path })).toEqual([
      { index: 0, bytes: 81_559 * 1024 * 1024 },
      { index: 1, bytes: 24_564 * 1024 * 1024 },
    ]);
  });

  it('cards are those that CUDA_VISIBLE_DEVICES leaves, in its order', async () => {
    const path = driverSays(two);
    const indexesOf = async (visible: string) =>
      (await cardsHere({ PATH: path, CUDA_VISIBLE_DEVICES: visible })).map(({ index }) => index);
    expect(await indexesOf('1,0')).toEqual([1, 0]);
    await expect(indexesOf('7')).rejects.toThrow('CUDA_VISIBLE_DEVICES=7 leaves no card');
  });

  it('missing cards are one line that says how to plan without them', async () => {
    await expect(cardsHere({ PATH: '/nowhere' })).rejects.toThrow(
      '--profile gpu: nvidia-smi is not here (--gpus 8x80GB --dry-run plans for cards that are not here).',
    );
    await expect(cardsHere({ PATH: driverSays(['No devices were found']) })).rejects.toThrow(
      'nvidia-smi names no card',
    );
  });

  it('a flag stands for cards that are not here', () => {
    expect(cardsOfFlag('2x24GB,80gb').map(({ index, bytes }) => [index, bytes])).toEqual([
      [0, 24e9],
      [1, 24e9],
      [2, 80e9],
    ]);
  });

  it.each(['8', '0x80GB', '8x80', '80GB,', '99x80GB', 'x80GB'])('no cards are read out of %s', (flag) => {
    expect(() => cardsOfFlag(flag)).toThrow(`--gpus '${flag}' is not cards such as 8x80GB or 2x24GB,1x80GB.`);
  });
});
