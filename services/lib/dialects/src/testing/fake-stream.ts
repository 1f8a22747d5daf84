// Streams a planned answer of a fake engine, token by token, with the faults that are set.
import type { ServerResponse } from 'node:http';
import type { FakeAnswer } from './fake-adapters.js';
import { roleFrame, tokenFrame, usageFrame, type Asked, type FakePlan } from './fake-chat.js';
import type { FakeState } from './fake-state.js';

const errorFrame =
  'data: {"error": {"message": "EngineCore encountered an issue. See stack trace (above) for the root cause.", "type": "InternalServerError", "param": null, "code": 500}}\n\n';

export async function streamChat(
  state: FakeState,
  plan: FakePlan,
  asked: Asked,
  response: ServerResponse,
): Promise<FakeAnswer | undefined> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  response.flushHeaders();
  await pause(state.settings.firstTokenMs);
  response.write(roleFrame(plan, asked));
  let sent = 0;
  while (sent < plan.tokens.length) {
    if (state.settings.tokenMs > 0) await pause(state.settings.tokenMs);
    if (response.destroyed) return undefined;
    if (dies(state, sent, response)) return undefined;
    const aborted = state.settings.faults.abortAfterTokens === sent + 1;
    const last = sent === plan.tokens.length - 1;
    const flowing = response.write(tokenFrame(plan, sent, asked, finishAt(plan, last, aborted)));
    sent += 1;
    state.counts.tokens += 1;
    if (aborted) break;
    if (!flowing) await drained(response);
  }
  if (asked.usage) response.write(usageFrame(plan, sent, asked));
  response.end('data: [DONE]\n\n');
  return undefined;
}

/** Resolves after so many milliseconds; at once, but not before the next turn of the loop, for 0. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    if (ms > 0) setTimeout(resolve, ms);
    else setImmediate(resolve);
  });
}

function finishAt(plan: FakePlan, last: boolean, aborted: boolean): string | undefined {
  if (aborted) return 'abort';
  return last ? plan.finishReason : undefined;
}

function dies(state: FakeState, sent: number, response: ServerResponse): boolean {
  const { dieAfterTokens } = state.settings.faults;
  if (dieAfterTokens?.tokens !== sent) return false;
  if (dieAfterTokens.how === 'socket') response.destroy();
  else response.end(`${errorFrame}data: [DONE]\n\n`);
  return true;
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.once('drain', done);
    response.once('close', done);
  });
}
