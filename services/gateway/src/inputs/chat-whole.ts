// Answers a chat request in one piece, once the turn is stored.
import { asBacktalkError } from '@backtalk/kit';
import { forClient } from '../domain/frame.js';
import { sendJson } from './answer.js';
import { askEngine } from './ask-engine.js';
import { callOptions, recordUnfinished, viewOf, type Exchange } from './exchange.js';
import type { Parts } from './parts.js';
import { TurnRecord } from './turn-record.js';

export async function answerWhole(parts: Parts, exchange: Exchange): Promise<void> {
  const { placed, request, response, signal, trace, startedMs } = exchange;
  const options = callOptions(parts, exchange);
  const asking = askEngine(parts, exchange, (client, body) => client.chat(body, options));
  const record = TurnRecord.open(parts, placed.turn, request, trace);
  const asked = await asking.catch((thrown: unknown) => {
    const error = asBacktalkError(thrown);
    recordUnfinished(parts, exchange, record, { turn: placed.turn, engine: undefined, error });
    throw error;
  });
  asked.leave();
  const { turn, engine, result } = asked;
  parts.events.firstToken((parts.clock.now() - startedMs) / 1000);
  const ending = signal.aborted ? 'aborted' : 'complete';
  await record.complete(turn, { capture: result.capture, ending, engine });
  const headers = { ...exchange.headers, 'X-Backtalk-Weights': turn.version };
  sendJson(response, 200, forClient(result.raw, viewOf(exchange, turn)), headers);
  parts.events.answerEnded((parts.clock.now() - startedMs) / 1000);
}
