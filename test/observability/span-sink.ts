// A collector of spans inside the test: takes OTLP/HTTP as any collector does, and keeps what it was sent.
// In: a port. Out: spans with the service that made them; and every byte, to look for what must not be there.
import { createServer, type IncomingMessage } from 'node:http';
import { z } from 'zod';

export interface SunkSpan {
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  /** Trace ids. */
  readonly links: readonly string[];
}

const request = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({
        attributes: z.array(z.object({ key: z.string(), value: z.object({ stringValue: z.string().optional() }) })),
      }),
      scopeSpans: z.array(
        z.object({
          spans: z.array(
            z.object({
              name: z.string(),
              traceId: z.string(),
              spanId: z.string(),
              parentSpanId: z.string().default(''),
              links: z.array(z.object({ traceId: z.string() })).default([]),
            }),
          ),
        }),
      ),
    }),
  ),
});

export class SpanSink {
  readonly spans: SunkSpan[] = [];
  /** Everything that was sent, as it came. */
  text = '';
  private readonly server = createServer((incoming, response) => {
    void this.take(incoming).then(() => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
  });

  async start(port: number): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(port, '127.0.0.1', resolve));
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  of(traceId: string): SunkSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }

  private async take(incoming: IncomingMessage): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(Buffer.from(part as Uint8Array));
    const body = Buffer.concat(parts).toString('utf8');
    this.text += body;
    for (const { resource, scopeSpans } of request.parse(JSON.parse(body)).resourceSpans) {
      const named = resource.attributes.find(({ key }) => key === 'service.name');
      const service = named?.value.stringValue ?? '';
      for (const { name, traceId, spanId, parentSpanId, links } of scopeSpans.flatMap(({ spans }) => spans))
        this.spans.push({ service, name, traceId, spanId, parentSpanId, links: links.map((link) => link.traceId) });
    }
  }
}
