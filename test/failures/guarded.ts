// Stores and parts that ask for every secret there is: Valkey and the broker for passwords, S3 for keys, gRPC for certificates, clients for a
// key. In: nothing. Out: options for a machine whose secrets are words that stand nowhere else.
import { writeFileSync } from 'node:fs';
import { openDataFolder } from '@backtalk/deploy';
import { hasS3, makeCertificates, startS3, TemporaryDirectory } from '@backtalk/kit/testing';
import type { TestMachineOptions } from '../loop/machine.js';

export interface Guarded {
  readonly key: string;
  /** False where no S3 server is installed: then blobs lie in a folder. */
  readonly hasS3: boolean;
  readonly options: Pick<TestMachineOptions, 'folder' | 'keys' | 'environment'>;
  /** The end of the blob store, before that of the machine. */
  stopS3(): Promise<void>;
  remove(): void;
}

const canary = (name: string): string => `zqx${name}vwk`.padEnd(40, 'z');

/** Some of those that `npm start` makes; it makes the others. */
const canaries = {
  hashSecret: canary('hash'),
  valkeyPassword: canary('valkey'),
  natsMonitor: canary('monitor'),
  engineKey: canary('engine'),
  passwords: { gateway: canary('gateway'), collector: canary('collector') },
};

export async function startGuarded(): Promise<Guarded> {
  const folder = new TemporaryDirectory('guarded');
  const { tlsCa, tlsCert, tlsKey } = makeCertificates(folder);
  const s3 = hasS3() ? await startS3() : undefined;
  const data = openDataFolder(folder.join('data'));
  writeFileSync(data.secrets, JSON.stringify(canaries));
  const key = `sk-${canary('key')}`;
  return {
    key,
    hasS3: s3 !== undefined,
    stopS3: async () => s3?.stop(),
    remove: () => folder.remove(),
    options: {
      folder: data.path,
      keys: [{ key, tenant: 'acme', user: 'alice' }],
      environment: {
        all: {
          BACKTALK_LOG_LEVEL: 'debug',
          BACKTALK_TLS_CA: tlsCa,
          BACKTALK_TLS_CERT: tlsCert,
          BACKTALK_TLS_KEY: tlsKey,
          ...(s3 !== undefined && {
            BACKTALK_BLOB_STORE: 's3',
            BACKTALK_S3_ENDPOINT: s3.url,
            BACKTALK_S3_BUCKET: s3.bucket,
            BACKTALK_S3_ACCESS_KEY: canary('access'),
            BACKTALK_S3_SECRET_KEY: canary('s3'),
          }),
        },
        trainer: { BACKTALK_RECIPE_SET: 'effective=4,effectiveMin=4' },
      },
    },
  };
}
