// Reads one request's JSON body.
//
// In: the request as a stream, its bounds, and room for it. Out: the parsed value and its size, or a refusal. It stops
// reading at the first bound that is broken, never decodes what is not valid UTF-8, and parses nothing large on the
// event loop.
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { isBacktalkError, JsonScan, type BacktalkError, type JsonBounds, type JsonExcess } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import { largeBodyBytes, type BodyRoom } from '../domain/body-budget.js';
import type { JsonParser } from '../outputs/json-parser.js';

interface JsonBody {
  readonly value: unknown;
  readonly bytes: number;
}

interface BodyReading {
  readonly bytesMax: number;
  readonly room: BodyRoom;
  readonly parser: JsonParser;
}

/** A request of 2,000 messages and 200 tools has some 40,000. 50,000 hold the event loop for a fourth of a second. */
const membersMax = 50_000;
/** Deeper values would overflow the stack where they are written out again. */
const depthMax = 200;

export async function readJsonBody(request: IncomingMessage, reading: BodyReading): Promise<JsonBody> {
  refuseOtherMedia(request);
  const { bytesMax, parser } = reading;
  const bytes = await readBytes(request, { bytesMax, membersMax, depthMax }, reading.room);
  if (bytes.length > largeBodyBytes) return { bytes: bytes.length, value: await parser.parse(bytes) };
  if (!isUtf8(bytes)) throw gatewayErrors.invalidJson({ why: 'it is not valid UTF-8' });
  try {
    return { value: JSON.parse(bytes.toString('utf8')), bytes: bytes.length };
  } catch {
    // The parser's own words quote the body.
    throw gatewayErrors.invalidJson({ why: bytes.length === 0 ? 'it is empty' : 'it is not valid JSON' });
  }
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
async function readBytes(request: IncomingMessage, bounds: JsonBounds, room: BodyRoom): Promise<Buffer> {
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
  return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
}

function refusalOf(excess: JsonExcess, { bytesMax, membersMax: members, depthMax: depth }: JsonBounds): BacktalkError {
  if (excess === 'bytes') return gatewayErrors.bodyTooLarge({ limitBytes: bytesMax });
  const why = excess === 'depth' ? `nested deeper than ${depth}` : `made of more than ${members} members and items`;
  return gatewayErrors.invalidJson({ why: `it is ${why}` });
}
