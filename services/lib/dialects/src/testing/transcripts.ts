// Reads recorded exchanges with real engines from `test/contracts`, and plays them back over HTTP.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

export interface Exchange {
  readonly title: string;
  readonly path: string;
  readonly request: string;
  readonly status: number;
  readonly body: string;
}

const contracts = new URL('../../../../../test/contracts/', import.meta.url);

export function readTranscript(file: string): Exchange[] {
  const text = readFileSync(new URL(file, contracts), 'utf8');
  return text.split(/^=== /m).slice(1).map(exchangeOf);
}

/** The exchange of a title. */
export function exchangeIn(file: string, title: string): Exchange | undefined {
  return readTranscript(file).find((exchange) => exchange.title === title);
}

/** Whether nothing of the reply was cut when it was recorded. */
export function isWhole({ body }: Exchange): boolean {
  return !/\.\.\. \[trimmed|^\.\.\.$/m.test(body);
}

/** The events of a recorded stream that are whole, where others were cut. */
export function wholeEvents(exchange: Exchange): Exchange {
  const lines = exchange.body.split('\n').map((line) => line.trim());
  const events = lines.filter((line) => line.startsWith('data: ') && (line.endsWith('}') || line.endsWith('[DONE]')));
  return { ...exchange, body: events.map((line) => `${line}\n\n`).join('') };
}

/** An engine that gives every caller the same recorded reply. */
export async function playBack(exchange: Exchange): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    request.resume();
    const stream = exchange.body.startsWith('data: ');
    response.writeHead(exchange.status, { 'content-type': stream ? 'text/event-stream' : 'application/json' });
    response.end(exchange.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function exchangeOf(section: string): Exchange {
  const lines = section.split('\n');
  const first = lines.findIndex((line) => line.startsWith('> '));
  const path = lines[first]?.split(' ')[2] ?? '';
  const request =
    lines
      .filter((line) => line.startsWith('> '))
      .at(-1)
      ?.slice(2) ?? '';
  const statusAt = lines.findIndex((line) => line.startsWith('< HTTP/'));
  const bodyAt = lines.findIndex((line, at) => at > statusAt && line === '<') + 1;
  const endAt = lines.findIndex((line) => line.startsWith('[total '));
  return {
    title: lines[0] ?? '',
    path,
    request,
    status: Number(lines[statusAt]?.split(' ')[2] ?? 0),
    body: withoutChunkSizes(lines.slice(bodyAt, endAt === -1 ? undefined : endAt)).join('\n'),
  };
}

/** Some replies were recorded with the sizes of their HTTP chunks between the events. */
function withoutChunkSizes(lines: string[]): string[] {
  return lines.filter((line) => !/^[0-9a-f]{1,5}$/.test(line));
}
