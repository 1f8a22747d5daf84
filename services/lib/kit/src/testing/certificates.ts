// Certificates as an operator makes them, by the script of the documents.
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { repositoryRoot } from './python-environment.js';
import type { TemporaryDirectory } from './temporary-directory.js';

export type CertificatePaths = Readonly<Record<'tlsCa' | 'tlsCert' | 'tlsKey', string>>;

/** An authority of its own, and a certificate that it has signed; gives the paths, by their settings. */
export function makeCertificates(folders: Pick<TemporaryDirectory, 'join'>): CertificatePaths {
  const folder = folders.join(randomUUID());
  execFileSync(join(repositoryRoot(), 'deploy', 'setup', 'certificates.sh'), [folder], { stdio: 'pipe' });
  return { tlsCa: join(folder, 'ca.crt'), tlsCert: join(folder, 'tls.crt'), tlsKey: join(folder, 'tls.key') };
}
