// Is this JSON? In: a body's bytes. Out: its value, or a refusal. Pure.
import { isUtf8 } from 'node:buffer';
import { gatewayErrors } from '../errors.js';

export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw gatewayErrors.invalidJson({ why: 'it is not valid UTF-8' });
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    // The parser's own words quote the body.
    throw gatewayErrors.invalidJson({ why: bytes.length === 0 ? 'it is empty' : 'it is not valid JSON' });
  }
}
