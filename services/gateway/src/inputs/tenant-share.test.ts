import { writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { sha256Hex } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import { ready, startGateway, startLeasedEngine, startSurroundings } from '../testing/started-gateway.js';

it('two keys of one tenant leave places and room to another tenant', async () => {
  const around = await startSurroundings();
  const leased = await startLeasedEngine(around, 'engine-1');
  const path = around.directory.join('keys.json');
  const key = (user: string, tenant: string) => ({ sha256: sha256Hex(user), tenant, user, policies: ['backtalk'] });
  await writeFile(path, JSON.stringify({ keys: [key('eve', 'evil'), key('mal', 'evil'), key('ann', 'acme')] }));
  const started = await startGateway(around, {
    BACKTALK_KEYS_FILE: path,
    BACKTALK_REQUESTS_MAX: '8',
    BACKTALK_KEY_REQUESTS_MAX: '4',
  });
  await ready(started);
  let refused = 0;
  const sockets: Socket[] = [];
  for (const user of ['eve', 'mal'])
    for (let at = 0; at < 5; at += 1) {
      const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${user}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`;
      const socket = connect(started.gateway.ports.http, '127.0.0.1', () => socket.write(head));
      socket.on('data', () => (refused += 1));
      sockets.push(socket);
    }
  await until(() => refused >= 2, { what: 'the refusals' });
  const body = JSON.stringify({ model: 'backtalk', messages: [{ role: 'user', content: 'Hi' }] });
  const headers = { 'content-type': 'application/json', authorization: 'Bearer ann' };
  const { status } = await fetch(`${started.url}/chat/completions`, { method: 'POST', headers, body });
  for (const socket of sockets) socket.destroy();
  await started.gateway.stop();
  await leased.stop();
  await around.stop();
  expect(status).toBe(200);
});
