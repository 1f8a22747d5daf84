import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { askTorch, deviceIn, trainingDevice, type DeviceFlag, type TorchSays } from './training-device.js';

const card = { name: 'NVIDIA H100', freeBytes: 78e9 };
const none = { why: 'torch is its CPU build' };
const root = repositoryRoot();

describe('where steps compute', () => {
  it.each<[DeviceFlag | undefined, DeviceFlag | undefined, TorchSays, object]>([
    ['cpu', 'cuda', card, { device: 'cpu', said: 'cpu', reason: 'the CPU (--device cpu)' }],
    ['cuda', 'cpu', card, { device: 'cuda', said: 'cuda', reason: 'NVIDIA H100, 78.0 GB free (--device cuda)' }],
    [undefined, 'cuda', card, { device: 'cuda', said: 'cuda', freeBytes: 78e9 }],
    [undefined, 'auto', none, { device: 'cpu', said: 'auto', reason: `the CPU (${none.why})` }],
    [
      undefined,
      undefined,
      card,
      { device: 'cpu', said: undefined, reason: 'the CPU (--device auto takes a card where torch sees one)' },
    ],
    [
      'auto',
      'cpu',
      card,
      {
        device: 'cuda',
        said: 'auto',
        reason: 'NVIDIA H100, 78.0 GB free (torch sees it; --device cpu takes the CPU)',
      },
    ],
  ])('steps compute as --device %s says, or %s before it, where torch says %j', async (flag, kept, torch, expected) => {
    const device = await trainingDevice(
      flag,
      kept,
      () => Promise.resolve(torch),
      () => true,
    );
    expect(device).toMatchObject(expected);
  });

  it('torch is not asked where there is no driver of a card', async () => {
    const ask = () => Promise.reject(new RangeError('Torch was asked.'));
    expect(await trainingDevice('auto', undefined, ask, () => false)).toMatchObject({
      device: 'cpu',
      reason: 'the CPU (no NVIDIA card here)',
    });
  });

  it('a device that the environment names is said, and a name that is none is not', () => {
    expect(deviceIn({ BACKTALK_DEVICE: 'cuda' })).toBe('cuda');
    expect(deviceIn({ BACKTALK_DEVICE: 'tpu' })).toBeUndefined();
  });

  it('CUDA that cannot be used is refused in one line with its reason', async () => {
    const refused = trainingDevice('cuda', undefined, () => Promise.resolve(none));
    await expect(refused).rejects.toThrow(
      '--device cuda cannot be used: torch is its CPU build (BACKTALK_TORCH=cuda npm start -- --device cuda takes the CUDA build',
    );
    const driver = trainingDevice('cuda', undefined, () => Promise.resolve({ why: 'there is no NVIDIA driver' }));
    await expect(driver).rejects.toThrow('--device cuda cannot be used: there is no NVIDIA driver.');
  });

  it('torch itself says what it sees, and a Python that is not there is a reason, too', async () => {
    const env = { PATH: '/usr/bin:/bin', PYTHONPATH: join(root, 'services', 'worker', 'src') };
    const said = await askTorch(root, env);
    expect('why' in said ? said.why : said.name).toMatch(/^torch is its CPU build|^there is no NVIDIA driver|^NVIDIA/);
    expect(await askTorch('/nowhere', env)).toEqual({ why: 'torch could not be asked' });
  });
});
