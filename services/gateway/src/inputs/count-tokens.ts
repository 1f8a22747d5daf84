// POST /v1/messages/count_tokens: how many tokens would an engine be given?
//
// In: a request of the Messages API that is not to be answered. Out: the length of its prompt, after the template of the
// model that would answer, tools included. Nothing is written down.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isEngineError, JsonText } from '@backtalk/dialects';
import { gatewayErrors } from '../errors.js';
import { largeBodyBytes } from '../domain/body-budget.js';
import { admitted } from './admit.js';
import { abortedWhenGone, headerIn, sendJson, traceOf } from './answer.js';
import { askEngine } from './ask-engine.js';
import { readRequest } from './chat.js';
import { openTurn } from './open-turn.js';
import type { Parts } from './parts.js';

/** Ids come back for all of it, and are read as one piece. */
const bytesMax = largeBodyBytes;

export function countTokens(parts: Parts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const startedMs = parts.clock.now();
  return admitted(parts, request, response, async (admission) => {
    const wanted = { api: 'messages', wanted: 'count' } as const;
    const { asked } = await readRequest(parts, request, { ...admission, bytesMax }, wanted);
    const caller = parts.access.callers.of(admission.keyId, admission.grant, asked.user);
    const opened = await openTurn(parts, asked, caller, (name) => headerIn(request, name));
    const trace = traceOf(request, parts.access.traces.samples());
    const signal = abortedWhenGone(response);
    const exchange = { ...opened, request: asked, shownMessages: undefined, startedMs, trace };
    const { result, leave } = await askEngine(parts, exchange, async (client, { model, messages }, deadlineMs) => {
      const { tools, templateArguments } = asked;
      const prompt = { messages, tools: written(tools), templateArguments: written(templateArguments) };
      try {
        return await client.tokenize({ model, ...prompt }, { deadlineMs, signal, room: admission.room });
      } catch (error) {
        if (isEngineError(error, 'engine_unsupported')) return undefined;
        throw error;
      }
    });
    leave();
    if (result === undefined) throw gatewayErrors.notCounted();
    sendJson(response, 200, { input_tokens: result.length });
  });
}

function written(json: Uint8Array): JsonText | undefined {
  return json.byteLength === 0 ? undefined : new JsonText(json);
}
