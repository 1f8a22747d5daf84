// A stand-in of S3 in memory (PyPI's moto). In: nothing. Out: a server on a random port with one bucket, or why there is
// none. It speaks the protocol; it is not Amazon's.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from './free-port.js';
import { pythonEnvironment } from './python-environment.js';
import { ServerProcess } from './server-process.js';

export interface TestS3 {
  readonly url: string;
  readonly bucket: string;
  stop(): Promise<void>;
}

export function hasS3(): boolean {
  return existsSync(programPath()) && !existsSync(reasonPath());
}

/** Why there is none, in one line. */
export function s3Missing(): string {
  if (existsSync(reasonPath())) return `skipped: ${readFileSync(reasonPath(), 'utf8').trim()}`;
  return 'skipped: no S3 server; node deploy/start.mjs setup --with development installs it';
}

export async function startS3(): Promise<TestS3> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const bucket = 'weights';
  const server = new ServerProcess({
    program: programPath(),
    arguments: ['-H', '127.0.0.1', '-p', String(port)],
    ready: async () => (await fetch(`${url}/moto-api/`, { signal: AbortSignal.timeout(2_000) })).ok,
  });
  await server.start();
  await fetch(`${url}/${bucket}`, { method: 'PUT', signal: AbortSignal.timeout(30_000) });
  return { url, bucket, stop: () => server.kill() };
}

function programPath(): string {
  return join(pythonEnvironment(), 's3', 'bin', 'moto_server');
}

/** The set-up writes it where it cannot install one. */
function reasonPath(): string {
  return join(pythonEnvironment(), 's3', 'absent.txt');
}
