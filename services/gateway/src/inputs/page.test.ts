import { pageFiles } from '@backtalk/console/files';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startGateway, startSurroundings, type StartedGateway, type Surroundings } from '../testing/started-gateway.js';

let around: Surroundings;
let started: StartedGateway;
let origin: string;

beforeAll(async () => {
  around = await startSurroundings();
  started = await startGateway(around);
  origin = new URL(started.url).origin;
});

afterAll(async () => {
  await started.gateway.stop();
  await around.stop();
});

const get = (path: string, init?: RequestInit) => fetch(`${origin}${path}`, init);

describe('the page', () => {
  it('the page is served whole: whatever a file of it asks for is there, with its media type', async () => {
    const asked = new Set(['/']);
    for (const path of asked) {
      const response = await get(path);
      expect(response.status, path).toBe(200);
      const text = await response.text();
      const type = response.headers.get('content-type') ?? '';
      const pattern = type.startsWith('text/html') ? /(?:src|href)="([^"]+)"/g : /from '(\.[^']+)'/g;
      for (const [, found = ''] of type.startsWith('text/css') ? [] : text.matchAll(pattern))
        asked.add(new URL(found, `${origin}${path}`).pathname);
    }
    expect([...asked].sort()).toEqual((await pageFiles()).map(({ path }) => path).sort());
  });

  it('the page may load and reach nothing but this endpoint, and be shown in no other page', async () => {
    for (const { path } of await pageFiles()) {
      const { headers } = await get(path);
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/unsafe|\*|https?:/);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
  });

  it('the page is open to a link of another site, while the API behind it stays closed to that site', async () => {
    const headers = { 'sec-fetch-site': 'cross-site' };
    expect((await get('/', { headers })).status).toBe(200);
    expect((await get('/v1/models', { headers })).status).toBe(403);
  });

  it('a path of the page names what may be asked where something else is', async () => {
    const response = await get('/', { method: 'POST' });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET']);
    expect((await get('/console/files.js')).status).toBe(404);
  });
});
