// Reads one request's JSON body.
//
// In: the request as a stream, and a limit. Out: the parsed value and its size, or a refusal. It stops reading at the
// limit, and never decodes what is not valid UTF-8.
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { gatewayErrors } from '../errors.js';

interface JsonBody {
  readonly value: unknown;
  readonly bytes: number;
}

export async function readJsonBody(request: IncomingMessage, limitBytes: number): Promise<JsonBody> {
  const { headers } = request;
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity')
    throw gatewayErrors.wrongMediaType({ why: 'Compressed request bodies are not read.' });
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  if (type.trim() !== 'application/json') throw gatewayErrors.wrongMediaType({ why: 'The body must be JSON.' });
  const charset = parameters.find((parameter) => parameter.trim().startsWith('charset='));
  if (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset.trim()))
    throw gatewayErrors.wrongMediaType({ why: 'The body must be UTF-8.' });
  // Express's own reader waits for the end of a body that is too large before it refuses it; this one does not.
  const chunks: Buffer[] = [];
  let size = Number(headers['content-length'] ?? 0) > limitBytes ? Infinity : 0;
  try {
    if (size === 0)
      for await (const chunk of request.iterator({ destroyOnReturn: false })) {
        if (!Buffer.isBuffer(chunk)) continue;
        size += chunk.length;
        if (size > limitBytes) break;
        chunks.push(chunk);
      }
  } catch (cause) {
    throw gatewayErrors.clientGone({}, cause);
  }
  if (size > limitBytes) throw gatewayErrors.bodyTooLarge({ limitBytes });
  const bytes = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
  if (!isUtf8(bytes)) throw gatewayErrors.invalidJson({ why: 'it is not valid UTF-8' });
  try {
    return { value: JSON.parse(bytes.toString('utf8')), bytes: bytes.length };
  } catch {
    // The parser's own words quote the body.
    throw gatewayErrors.invalidJson({ why: bytes.length === 0 ? 'it is empty' : 'it is not valid JSON' });
  }
}
