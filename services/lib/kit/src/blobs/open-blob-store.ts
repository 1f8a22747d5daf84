// Which store holds the blobs? One setting decides, the same for all services. In: settings and the broker. Out: the
// store. A store that is not as it must be stops the start.
import type { Broker } from '../broker/connect.js';
import type { BlobPlace } from '../config/setting.js';
import { blobErrors, type BlobStore } from './blob-store.js';
import { systemClock } from '../time/clock.js';
import { dropStrayFiles, folderBlobStore } from './folder-blob-store.js';
import { openJetStreamBlobStore } from './jetstream-blob-store.js';
import { openS3BlobStore } from './s3-blob-store.js';

/** The values of `blobSettings`. */
export interface BlobConfig {
  readonly blobStore: BlobPlace;
  readonly s3Endpoint: string;
  readonly s3Bucket: string;
  readonly s3Region: string;
  readonly s3AccessKey: string;
  readonly s3SecretKey: string;
}

export async function openBlobStore(config: BlobConfig, broker: Broker): Promise<BlobStore> {
  const { blobStore: place } = config;
  switch (place.kind) {
    case 'folder':
      await dropStrayFiles(place.path, systemClock.now());
      return folderBlobStore(place.path);
    case 'jetstream':
      return openJetStreamBlobStore(broker);
    case 's3':
      checkS3(config);
      return openS3BlobStore({
        endpoint: config.s3Endpoint,
        bucket: config.s3Bucket,
        region: config.s3Region,
        accessKey: config.s3AccessKey,
        secretKey: config.s3SecretKey,
      });
  }
}

function checkS3({ s3Bucket, s3Endpoint, s3AccessKey, s3SecretKey }: BlobConfig): void {
  if (s3Bucket === '') throw blobErrors.blobBucketUnnamed();
  if (s3Endpoint !== '' && !(/^https?:\/\//.test(s3Endpoint) && URL.canParse(s3Endpoint)))
    throw blobErrors.blobSettingsInvalid({ what: 'BACKTALK_S3_ENDPOINT is not an address such as http://host:port' });
  if ((s3AccessKey === '') !== (s3SecretKey === ''))
    throw blobErrors.blobSettingsInvalid({
      what: 'one of BACKTALK_S3_ACCESS_KEY and BACKTALK_S3_SECRET_KEY is missing: set both, or none',
    });
}
