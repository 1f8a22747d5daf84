// POST /v1/chat/completions: takes a request in and has it answered.
//
// The key is checked before anything is read, and everything about the request before an engine is asked. Nothing here
// waits for judge, trainer or publisher.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { inSpan, traceFrom } from '@backtalk/kit';
import { readChatRequest } from '../domain/chat-request.js';
import { headerIn } from './answer.js';
import { answerTurn } from './answer-turn.js';
import { openTurn } from './open-turn.js';
import type { Parts } from './parts.js';
import { readJsonBody } from './read-body.js';

export async function chat(parts: Parts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { config, clock, events, access, turns } = parts;
  const startedMs = clock.now();
  const { keyId, grant } = access.keys.identify(request.headers.authorization);
  const leave = access.slots.enter(keyId, grant.limits.concurrency);
  events.requestTaken();
  try {
    const { value, bytes } = await readJsonBody(request, config.bodyBytesMax);
    const chatRequest = readChatRequest(value);
    turns.store.admit(bytes);
    const caller = access.callers.of(keyId, grant, chatRequest.user);
    const opened = await openTurn(parts, chatRequest, caller, (name) => headerIn(request, name));
    const { turn } = opened;
    const headers = {
      ...(response.hasHeader('X-Request-Id') ? {} : { 'X-Request-Id': turn.id }),
      'X-Backtalk-Turn': turn.id,
      'X-Backtalk-Session': turn.session,
      'X-Backtalk-Weights': turn.version,
    };
    // A turn that is not traced yet is traced under its own id.
    const id = turn.id.slice('turn_'.length);
    const parent = traceFrom(headerIn(request, 'traceparent') ?? `00-${id}-${id.slice(-16)}-01`);
    const attributes = { 'backtalk.turn': turn.id, 'backtalk.version': turn.version };
    await inSpan('chat_completions', { kind: 'server', parent, attributes }, (trace) => {
      // Aborts as soon as the connection closes before the answer was over, so that no engine works in vain.
      const gone = new AbortController();
      // It may have closed while the request was being read.
      if (response.destroyed) gone.abort();
      response.once('close', () => {
        if (!response.writableFinished) gone.abort();
      });
      const { signal } = gone;
      return answerTurn(parts, { ...opened, request: chatRequest, response, headers, signal, trace, startedMs });
    });
  } finally {
    leave();
    events.requestLeft();
  }
}
