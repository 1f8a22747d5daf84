import { freePort } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import { busyPorts, endpointUrl, portsFrom, refuseForeignHost } from './ports.js';

it.each([
  ['127.0.0.1', 'http://127.0.0.1:30000/v1'],
  ['::1', 'http://[::1]:30000/v1'],
  ['::', 'http://[::1]:30000/v1'],
  ['0.0.0.0', 'http://127.0.0.1:30000/v1'],
  ['models.example', 'http://models.example:30000/v1'],
])('the endpoint on %s has an address that clients can call', (host, url) => {
  expect(endpointUrl(host, portsFrom(30_000))).toBe(url);
  expect(new URL(url).port).toBe('30000');
});

it('an address of another machine is refused before keys are asked for', async () => {
  await expect(refuseForeignHost('nope.invalid')).rejects.toThrow("--host 'nope.invalid' is not an address of this");
  await expect(refuseForeignHost('127.0.0.1')).resolves.toBeUndefined();
});

it('an address that is not of this machine is refused by its name, and not taken for a port in use', async () => {
  const ports = portsFrom(await freePort());
  await expect(busyPorts(ports, '192.0.2.1')).rejects.toThrow("--host '192.0.2.1' is not an address of this machine.");
});
