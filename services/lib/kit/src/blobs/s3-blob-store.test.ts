import { describe, expect, it } from 'vitest';
import { verdictOn } from '../facts/delivery.js';
import { s3Error } from './s3-blob-store.js';

const doing = { doing: 'get', bucket: 'b', digest: 'd' };
const answer = (name: string, status: number) =>
  Object.assign(new TypeError(name), { name, $metadata: { httpStatusCode: status } });

describe('what an S3 server says', () => {
  it.each([
    ['SlowDown', 503, 'blob_store_failed'],
    ['InternalError', 500, 'blob_store_failed'],
    ['AccessDenied', 403, 'blob_store_refused'],
  ])('lets a fact wait until the store is back: %s', (name, status, code) => {
    const error = s3Error(answer(name, status), doing);
    expect(error.code).toBe(code);
    expect(verdictOn(error, 99, 8)).toEqual({ kind: 'wait' });
  });

  it.each(['AbortError', 'TimeoutError'])('lets a fact wait where an S3 server never answers: %s', (name) => {
    const error = s3Error(Object.assign(new DOMException('', name)), doing);
    expect(error.code).toBe('blob_store_failed');
    expect(verdictOn(error, 99, 8)).toEqual({ kind: 'wait' });
  });

  it('a fact whose blob is not there yet is tried for minutes, and then given up', () => {
    const error = s3Error(answer('NoSuchKey', 404), doing);
    expect(error.code).toBe('blob_missing');
    expect(verdictOn(error, 23, 8)).toEqual({ kind: 'retry' });
    expect(verdictOn(error, 24, 8)).toEqual({ kind: 'dead' });
  });
});
