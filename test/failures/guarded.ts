// Stores and parts that ask for every secret there is: Valkey for a password, S3 for keys, gRPC for certificates, clients for a
// key. In: nothing. Out: options for a machine whose secrets are words that stand nowhere else.
import { hasS3, makeCertificates, startS3, TemporaryDirectory } from '@backtalk/kit/testing';
import type { TestMachineOptions } from '../loop/machine.js';

export interface Guarded {
  readonly key: string;
  readonly valkeyPassword: string;
  /** False where no S3 server is installed: then blobs lie in a folder. */
  readonly hasS3: boolean;
  readonly options: Pick<TestMachineOptions, 'keys' | 'environment' | 'adapt'>;
  /** The end of the blob store, before that of the machine. */
  stopS3(): Promise<void>;
  remove(): void;
}

const canary = (name: string): string => `zqx${name}vwk`.padEnd(40, 'z');

export async function startGuarded(): Promise<Guarded> {
  const folder = new TemporaryDirectory('guarded');
  const { tlsCa, tlsCert, tlsKey } = makeCertificates(folder);
  const s3 = hasS3() ? await startS3() : undefined;
  const valkeyPassword = canary('valkey');
  const key = `sk-${canary('key')}`;
  return {
    key,
    valkeyPassword,
    hasS3: s3 !== undefined,
    stopS3: async () => s3?.stop(),
    remove: () => folder.remove(),
    options: {
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
      adapt: (spec) => {
        if (spec.name === 'valkey') return { ...spec, args: [...spec.args, '--requirepass', valkeyPassword] };
        const url = spec.env['BACKTALK_VALKEY_URL'];
        if (url === undefined) return spec;
        return { ...spec, env: { ...spec.env, BACKTALK_VALKEY_URL: url.replace('://', `://:${valkeyPassword}@`) } };
      },
    },
  };
}
