import { ServerResponse, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { ClientPresence } from './client-presence.js';

describe('a client', () => {
  it('that left while its request was being read is gone from the first look on', () => {
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    expect(new ClientPresence(response).aborted).toBe(false);
    response.destroy();
    expect(new ClientPresence(response).aborted).toBe(true);
  });

  it('that leaves before the answer is over is told to whoever listens', () => {
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    const presence = new ClientPresence(response);
    let told = 0;
    presence.addEventListener('abort', () => {
      told += 1;
    });
    response.emit('close');
    expect(told).toBe(1);
    expect(presence.aborted).toBe(true);
  });
});
