// Has one turn answered: frame by frame as the engine sends them, or in one piece.
//
// The frame with a finish reason is where clients stop: it, and what follows it, is held until the turn is stored; so is
// a whole answer. An answer that breaks off ends in an error frame, never in `[DONE]` or `response.completed`. What of an
// answer lies here takes room beside the bodies of requests, until its client has it.
import type { ServerResponse } from 'node:http';
import { CaptureAccumulator, isEngineError, type EngineAnswer, type EngineFrame } from '@backtalk/dialects';
import { asBacktalkError, isBacktalkError, type Trace } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import type { BodyRoom } from '../domain/body-budget.js';
import type { ChatRequest } from '../domain/chat-request.js';
import { answerForm } from '../domain/answer-form.js';
import { KeptAnswer } from '../domain/kept-answer.js';
import type { Turn } from '../domain/turn.js';
import type { ShareOwner } from '../outputs/capture-share.js';
import { sendJson } from './answer.js';
import { askEngine, isNoRoom, noteDeath, promptOf, type Ask, type AskedAnswer } from './ask-engine.js';
import type { OpenedTurn } from './open-turn.js';
import type { Parts } from './parts.js';
import { StreamWriter } from './stream-writer.js';
import { TurnRecord } from './turn-record.js';

/** One request that is being answered. */
export interface Exchange extends OpenedTurn {
  readonly request: ChatRequest;
  /** JSON array of its messages with lessons in them, while the turn says that some are shown. */
  readonly shownMessages: Uint8Array | undefined;
  readonly response: ServerResponse;
  /** What the client reads about its turn, however the answer goes. */
  readonly headers: Readonly<Record<string, string>>;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
  readonly trace: Trace;
  readonly startedMs: number;
  /** Whose share of the day's log is full: then the turn is answered, and not stored. */
  readonly fullShare: ShareOwner | undefined;
}

interface Begun<T> extends AskedAnswer<T> {
  readonly record: TurnRecord;
}

/** A stream whose first frame has come. */
interface BegunStream {
  readonly first: EngineFrame;
  readonly rest: AsyncIterator<EngineFrame>;
  readonly room: BodyRoom;
}

type Answering = (parts: Parts, exchange: Exchange, freshRoom: () => BodyRoom) => Promise<void>;

const streamHeaders = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-cache',
  'X-Accel-Buffering': 'no',
};

export async function answerTurn(parts: Parts, exchange: Exchange): Promise<void> {
  const { request, response, headers, startedMs } = exchange;
  const { clock, events } = parts;
  try {
    await inRoom(parts, exchange, request.stream ? answerStream : answerWhole);
    parts.serving.deadly.answered(promptOf(request));
    events.answerEnded((clock.now() - startedMs) / 1000);
  } catch (thrown) {
    // An answer that failed before it began names its turn all the same.
    if (!response.headersSent) for (const name in headers) response.setHeader(name, headers[name] ?? '');
    throw thrown;
  }
}

/** Gives the room back once the client has what was sent of the answer, or nothing was. */
async function inRoom(parts: Parts, exchange: Exchange, answer: Answering): Promise<void> {
  const { response } = exchange;
  const { keyId, tenant } = exchange.turn.caller;
  let room: BodyRoom | undefined;
  const leave = (): void => room?.leave();
  const freshRoom = (): BodyRoom => {
    // Nothing is kept of what another engine said before.
    leave();
    return (room = parts.access.bodies.room(keyId, tenant));
  };
  try {
    await answer(parts, exchange, freshRoom);
  } finally {
    response.once('close', leave);
    if (response.closed || !response.headersSent) leave();
  }
}

async function answerStream(parts: Parts, exchange: Exchange, freshRoom: () => BodyRoom): Promise<void> {
  const { firstByteWaitMs: firstByteMs, silenceWaitMs: idleMs } = parts.config;
  const { signal } = exchange;
  const begun = await begin(parts, exchange, async (client, body, deadlineMs) => {
    const turn = () => parts.access.fairPieces.of(exchange.turn.caller.keyId);
    const room = freshRoom();
    const options = { signal, deadlineMs, firstByteMs, idleMs, turn, room };
    const rest = client.chatStream(body, options)[Symbol.asyncIterator]();
    // Until the first frame has come, a failure can be hidden from the client.
    const step = await rest.next();
    if (step.done === true) throw gatewayErrors.engineBroke();
    return { first: step.value, rest, room };
  });
  await relay(parts, exchange, begun);
}

async function answerWhole(parts: Parts, exchange: Exchange, freshRoom: () => BodyRoom): Promise<void> {
  const { signal } = exchange;
  const begun = await begin(parts, exchange, (client, body, deadlineMs) =>
    client.chat(body, { signal, deadlineMs, room: freshRoom() }),
  );
  await sendWhole(exchange, begun);
}

async function sendWhole(
  { request, response, headers, signal }: Exchange,
  { turn, engine, result, leave, record }: Begun<EngineAnswer>,
): Promise<void> {
  leave();
  await record.complete(turn, { capture: result.capture, ending: signal.aborted ? 'aborted' : 'complete', engine });
  const body = answerForm(request, turn.id).whole(result.raw, result.capture);
  sendJson(response, 200, body, { ...headers, ...headersOf(turn) });
}

/** What only the engine's answer settles. */
function headersOf({ version, shown }: Turn): Record<string, string> {
  const lessons = shown === undefined ? {} : { 'X-Backtalk-Lessons': String(shown.lessons.length) };
  return { 'X-Backtalk-Weights': version, ...lessons };
}

/** Asks an engine, and writes the request down meanwhile. */
async function begin<T>(parts: Parts, exchange: Exchange, ask: Ask<T>): Promise<Begun<T>> {
  const asking = askEngine(parts, exchange, ask);
  const record = new TurnRecord(parts, exchange);
  try {
    const asked = await asking;
    parts.events.lessonsShown(asked.turn.shown?.lessons.length ?? 0);
    parts.events.firstToken((parts.clock.now() - exchange.startedMs) / 1000);
    return { ...asked, record };
  } catch (thrown) {
    record.breakOff(exchange.turn, { engine: undefined, capture: new CaptureAccumulator().capture() }, thrown);
    throw thrown;
  }
}

async function relay(
  parts: Parts,
  exchange: Exchange,
  { turn, engine, result, leave, record }: Begun<BegunStream>,
): Promise<void> {
  const { request, response, headers, signal } = exchange;
  response.writeHead(200, { ...streamHeaders, ...headers, ...headersOf(turn) });
  const writer = new StreamWriter(response, result.room, parts.config.readerWaitMs);
  const answer = new KeptAnswer(result.room);
  const form = answerForm(request, turn.id);
  // The text of the frames that are held, from the final one on.
  let held = '';
  try {
    for (let frame = result.first; ;) {
      answer.add(frame);
      const text = form.frame(frame);
      if (held !== '' || frame.finishReason !== undefined) held += text;
      else if (!writer.write(text)) await writer.drained();
      const step = await result.rest.next();
      if (step.done === true) break;
      frame = step.value;
    }
  } catch (thrown) {
    await result.rest.return?.();
    if (isBacktalkError(thrown, 'reader_too_slow')) parts.events.readerCut(turn.id);
    if (isEngineError(thrown, 'engine_stream_broken')) parts.turns.background.add(noteDeath(parts, exchange, engine));
    record.breakOff(turn, { engine, ...answer.kept() }, thrown);
    if (signal.aborted) throw thrown;
    const broken = isNoRoom(thrown) ? thrown : gatewayErrors.engineBroke({}, asBacktalkError(thrown));
    writer.end(form.broken(broken));
    throw broken;
  } finally {
    leave();
  }
  await record.complete(turn, { ...answer.kept(), ending: 'complete', engine });
  writer.end(held + form.end());
}
