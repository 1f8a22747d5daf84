// Answers a chat request frame by frame, as the engine sends them.
//
// The frame with a finish reason is where clients stop: it, and what follows it, is held until the turn is stored. An
// answer that breaks off ends in an error frame, never in `[DONE]`.
import { CaptureAccumulator, type EngineFrame } from '@backtalk/dialects';
import { asBacktalkError } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import { chunkForClient, forClient, sseDone, sseEvent, type ClientView } from '../domain/frame.js';
import { askEngine, type AskedAnswer } from './ask-engine.js';
import { callOptions, recordUnfinished, viewOf, type Exchange } from './exchange.js';
import type { Parts } from './parts.js';
import { StreamWriter } from './stream-writer.js';
import { TurnRecord } from './turn-record.js';

/** A stream whose first frame has come. */
interface BegunStream {
  readonly first: EngineFrame;
  readonly rest: AsyncIterator<EngineFrame>;
}

const headers = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-cache',
  'X-Accel-Buffering': 'no',
};

export async function answerStream(parts: Parts, exchange: Exchange): Promise<void> {
  const { placed, request, trace } = exchange;
  const options = callOptions(parts, exchange);
  const asking = askEngine(parts, exchange, (client, body) => begin(client.chatStream(body, options)));
  const record = TurnRecord.open(parts, placed.turn, request, trace);
  const asked = await asking.catch((thrown: unknown) => {
    const error = asBacktalkError(thrown);
    recordUnfinished(parts, exchange, record, { turn: placed.turn, engine: undefined, error });
    throw error;
  });
  try {
    await relay(parts, exchange, record, asked);
  } finally {
    asked.leave();
  }
}

/** Until the first frame has come, a failure can be hidden from the client. */
async function begin(frames: AsyncIterable<EngineFrame>): Promise<BegunStream> {
  const rest = frames[Symbol.asyncIterator]();
  const step = await rest.next();
  if (step.done === true) throw gatewayErrors.engineBroke();
  return { first: step.value, rest };
}

async function relay(
  parts: Parts,
  exchange: Exchange,
  record: TurnRecord,
  { turn, engine, result }: AskedAnswer<BegunStream>,
): Promise<void> {
  const { response, startedMs } = exchange;
  parts.events.firstToken((parts.clock.now() - startedMs) / 1000);
  response.writeHead(200, { ...headers, ...exchange.headers, 'X-Backtalk-Weights': turn.version });
  const writer = new StreamWriter(response, parts.clock, parts.config.readerWaitMs);
  const accumulator = new CaptureAccumulator();
  const view = viewOf(exchange, turn);
  let held: string;
  try {
    held = await pass(result, accumulator, writer, view);
  } catch (thrown) {
    await result.rest.return?.();
    const error = asBacktalkError(thrown);
    if (error.code === 'reader_too_slow') parts.events.readerCut(turn.id);
    recordUnfinished(parts, exchange, record, { turn, engine, capture: accumulator.capture(), error });
    throw exchange.signal.aborted ? error : gatewayErrors.engineBroke({}, error);
  }
  await record.complete(turn, { capture: accumulator.capture(), ending: 'complete', engine });
  response.end(held);
  parts.events.answerEnded((parts.clock.now() - startedMs) / 1000);
}

/** Writes frames as they come. Out: the text of those that are held, from the final one on. */
async function pass(
  { first, rest }: BegunStream,
  accumulator: CaptureAccumulator,
  writer: StreamWriter,
  view: ClientView,
): Promise<string> {
  let held = '';
  for (let frame = first; ;) {
    accumulator.add(frame);
    const text = textFor(frame, view);
    if (held !== '' || frame.finishReason !== undefined) held += text;
    else if (!writer.write(text)) await writer.drained();
    const step = await rest.next();
    if (step.done === true) break;
    frame = step.value;
  }
  return held + sseDone;
}

function textFor(frame: EngineFrame, view: ClientView): string {
  // A chunk of token counts alone is for those who asked.
  if (frame.choice === -1) return view.wantsUsage ? sseEvent(JSON.stringify(forClient(frame.raw, view))) : '';
  return sseEvent(JSON.stringify(chunkForClient(frame.raw, view)));
}
