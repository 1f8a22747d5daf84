export type { BlobInfo, BlobStore } from './blob-store.js';
export { blobErrors } from './errors.js';
export { folderBlobStore, type FolderBlobOptions } from './folder-blob-store.js';
