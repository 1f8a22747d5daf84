// Reads one request's JSON body.
//
// In: the request as a stream, its bounds, and room for it. Out: its bytes, or a refusal. It stops reading at the first
// bound that is broken.
import type { IncomingMessage } from 'node:http';
import { isBacktalkError, JsonScan, type BacktalkError, type JsonBounds, type JsonExcess } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import type { BodyRoom } from '../domain/body-budget.js';

export interface Body {
  readonly bytes: Buffer;
  /** As far as they were counted: in fewer bytes than there may be members, they are not. */
  readonly members: number;
}

interface BodyReading {
  readonly bytesMax: number;
  readonly room: BodyRoom;
}

/** A request of 2,000 messages and 200 tools has some 40,000. */
const membersMax = 50_000;
/** Deeper values would overflow the stack where they are written out again. */
const depthMax = 200;

export async function readBody(request: IncomingMessage, { bytesMax, room }: BodyReading): Promise<Body> {
  refuseOtherMedia(request);
  return readBytes(request, { bytesMax, membersMax, depthMax }, room);
}

function refuseOtherMedia({ headers }: IncomingMessage): void {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity')
    throw gatewayErrors.wrongMediaType({ why: 'Compressed request bodies are not read.' });
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  if (type.trim() !== 'application/json') throw gatewayErrors.wrongMediaType({ why: 'The body must be JSON.' });
  const charset = parameters.find((parameter) => parameter.trim().startsWith('charset='));
  if (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset.trim()))
    throw gatewayErrors.wrongMediaType({ why: 'The body must be UTF-8.' });
}

/** Express's own reader waits for the end of a body that is too large before it refuses it; this one does not. */
async function readBytes(request: IncomingMessage, bounds: JsonBounds, room: BodyRoom): Promise<Body> {
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > bounds.bytesMax) throw refusalOf('bytes', bounds);
  room.grow(declared);
  let scan: JsonScan | undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      if (!Buffer.isBuffer(chunk)) continue;
      size += chunk.length;
      // Node's parser keeps a declared length; what has none grows as it comes.
      if (size > declared) room.grow(chunk.length);
      if (size > bounds.bytesMax) throw refusalOf('bytes', bounds);
      chunks.push(chunk);
      // Fewer bytes cannot hold too many members; how deep they are, the request's own reader sees.
      if (size <= bounds.membersMax) continue;
      const unseen = scan === undefined ? chunks : [chunk];
      scan ??= new JsonScan(bounds);
      for (const piece of unseen) {
        const excess = scan.add(piece);
        if (excess !== undefined) throw refusalOf(excess, bounds);
      }
    }
  } catch (thrown) {
    throw isBacktalkError(thrown) ? thrown : gatewayErrors.clientGone({}, thrown);
  }
  const bytes = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
  return { bytes, members: scan?.membersSeen ?? 0 };
}

function refusalOf(excess: JsonExcess, { bytesMax, membersMax: members, depthMax: depth }: JsonBounds): BacktalkError {
  if (excess === 'bytes') return gatewayErrors.bodyTooLarge({ limitBytes: bytesMax });
  const why = excess === 'depth' ? `nested deeper than ${depth}` : `made of more than ${members} members and items`;
  return gatewayErrors.invalidJson({ why: `it is ${why}` });
}
