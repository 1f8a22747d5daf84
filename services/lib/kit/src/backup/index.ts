export { backUp, keptStreams, restoreBackup, type BackUpOptions, type RestoreOptions } from './backup.js';
export { backupErrors } from './errors.js';
export { readManifest, type Manifest, type SnapshotFile } from './manifest.js';
