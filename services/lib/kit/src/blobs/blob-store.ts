// Bytes that are named by what they are. In: bytes. Out: their sha256, by which they come back, verified.

export interface BlobInfo {
  readonly digest: string;
  readonly bytes: number;
  /** When it was last put: sweeping spares what is young. */
  readonly modifiedMs: number;
}

export interface BlobStore {
  /** Putting the same bytes again is cheap and renews their age. */
  put(bytes: Uint8Array): Promise<string>;
  /** Throws `blob_missing` or `blob_corrupt`. */
  get(digest: string): Promise<Uint8Array>;
  has(digest: string): Promise<boolean>;
  /** Deleting what is not there is no error. */
  delete(digest: string): Promise<void>;
  list(): AsyncIterable<BlobInfo>;
  usedBytes(): Promise<number>;
}
