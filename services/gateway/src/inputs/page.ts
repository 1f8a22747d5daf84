// The page that people open in a browser. It holds nothing of anybody's: what it shows it asks of the API, as any client
// does. It may load nothing from elsewhere, and no other page may show it.
import type { Express } from 'express';
import type { PageFile } from '@backtalk/console/files';
import { gatewayErrors } from '../errors.js';
import { nameRequest, sendError } from './answer.js';
import type { Parts } from './parts.js';

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const headers = {
  'Content-Security-Policy': policy,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-cache',
};

export function servePage(app: Express, { events }: Pick<Parts, 'events'>, files: readonly PageFile[]): void {
  for (const { path, type, bytes } of files) {
    app.get(path, (request, response) => {
      nameRequest(request, response);
      response.writeHead(200, { ...headers, 'Content-Type': type, 'Content-Length': bytes.length });
      response.end(request.method === 'HEAD' ? undefined : bytes);
      events.answered('page', response.statusCode);
    });
    app.all(path, (request, response) => {
      nameRequest(request, response);
      sendError(request, response, gatewayErrors.wrongMethod({ allow: 'GET' }));
      events.answered('page', response.statusCode);
    });
  }
}
