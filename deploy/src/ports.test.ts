import { expect, it } from 'vitest';
import { endpointUrl, portsFrom } from './ports.js';

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
