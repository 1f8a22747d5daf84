// Is this JSON? In: a body's bytes. Out: its value, or a refusal. Pure.
import { isUtf8 } from 'node:buffer';
import { gatewayErrors } from '../errors.js';

export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw gatewayErrors.invalidJson({ why: 'it is not valid UTF-8' });
  const text = bytes.toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's own words quote the body.
    throw gatewayErrors.invalidJson({ why: bytes.length === 0 ? 'it is empty' : 'it is not valid JSON' });
  }
  // Only an escape can be one, and what is written again escapes nothing else of that form.
  if (surrogate.test(text) && surrogate.test(JSON.stringify(value)))
    throw gatewayErrors.invalidJson({ why: 'it holds half of a character (a lone surrogate)' });
  return value;
}

/** An escape with an odd number of backslashes before it. */
const surrogate = /(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]/;
