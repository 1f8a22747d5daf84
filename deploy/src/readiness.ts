// Two questions to a process that is starting: does a port accept, does an address answer 200.
import { connect } from 'node:net';
import { request } from 'node:http';

const answerWithinMs = 1_000;

export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: answerWithinMs });
    const end = (listening: boolean) => {
      socket.destroy();
      resolve(listening);
    };
    socket.once('connect', () => {
      end(true);
    });
    socket.once('error', () => {
      end(false);
    });
    socket.once('timeout', () => {
      end(false);
    });
  });
}

export function answersOk(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request(url, { timeout: answerWithinMs }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    asked.once('timeout', () => {
      asked.destroy();
      resolve(false);
    });
    asked.once('error', () => {
      resolve(false);
    });
    asked.end();
  });
}
