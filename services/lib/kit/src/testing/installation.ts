// What an installation decides, for services that a test composes by hand: a laptop whose blobs lie in a folder.
import type { BlobConfig } from '../blobs/open-blob-store.js';
import type { WireConfig } from '../config/wire-security.js';
import type { InstallationConfig } from '../installation/check-installation.js';

export function laptopInstallation(blobs: string): BlobConfig & Omit<InstallationConfig, 'valkeyUrl'> & WireConfig {
  return {
    profile: 'laptop',
    natsMonitorUrl: '',
    blobStore: { kind: 'folder', path: blobs },
    s3Endpoint: '',
    s3Bucket: '',
    s3Region: 'us-east-1',
    s3AccessKey: '',
    s3SecretKey: '',
    tlsCa: '',
    tlsCert: '',
    tlsKey: '',
  };
}
