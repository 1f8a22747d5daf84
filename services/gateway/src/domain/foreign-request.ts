// May a request without a key have come from elsewhere than this machine's own programs?
//
// In: the headers of a request to a keyless gateway. Out: what speaks for it, or undefined. A web page reaches a loopback
// address by a name of its own that it binds anew to 127.0.0.1, or by the browser's leave to send across sites: the
// first shows in Host, the second in Origin and Sec-Fetch-Site. Pure.
import type { IncomingHttpHeaders } from 'node:http';

/** An address in figures cannot be bound anew; of names, only this one means this machine everywhere. */
const loopbackName = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
const portAtEnd = /:\d{1,5}$/;
const quotedCharactersMax = 100;

export function foreignSign(headers: IncomingHttpHeaders): string | undefined {
  const { host = '', origin } = headers;
  if (!isLoopback(host)) return `its Host is ${quoted(host)}`;
  if (origin !== undefined && !isLoopback(origin.replace(/^https?:\/\//, ''))) return `its Origin is ${quoted(origin)}`;
  if (headers['sec-fetch-site'] === 'cross-site') return 'a browser sent it from another site';
  return undefined;
}

function isLoopback(host: string): boolean {
  return loopbackName.test(host.toLowerCase().replace(portAtEnd, ''));
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, quotedCharactersMax));
}
