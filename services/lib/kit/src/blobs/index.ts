export type { BlobInfo, BlobStore } from './blob-store.js';
export { blobErrors } from './errors.js';
export { folderBlobStore, type FolderBlobOptions } from './folder-blob-store.js';
export { openJetStreamBlobStore, type JetStreamBlobOptions } from './jetstream-blob-store.js';
export { blobBucket, blobStream } from './object-bucket.js';
export { openBlobStore, type BlobConfig } from './open-blob-store.js';
export { dropStrayPieces } from './stray-pieces.js';
export { openS3BlobStore, type S3BlobOptions } from './s3-blob-store.js';
