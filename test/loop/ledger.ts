// What clients wrote down: one row a request, with nothing in it that only the system could know.
// Answers stand in it as a hash of the bytes that arrived and their count, so that the log can be held against them.
import { createHash } from 'node:crypto';

export interface LedgerRow {
  /** Who asked, among the clients of a test. */
  readonly client: string;
  /** From the answer's header; empty when no header arrived. */
  readonly turn: string;
  /** The version that the answer's header names. */
  readonly weights: string;
  /** 0 when there was no answer at all. */
  readonly status: number;
  readonly bytes: number;
  /** sha256 of the answer's bytes that arrived, as UTF-8. */
  readonly hash: string;
  /** The frame with the finish reason arrived, or the whole answer did. */
  readonly finished: boolean;
  /** The code of an error that came in place of an answer, or in the middle of one. */
  readonly error: string;
  /** The turn whose answer this request contained; empty when it began a conversation. */
  readonly continues: string;
  /** The client asked not to be learned from. */
  readonly optedOut: boolean;
}

export function hashOf(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

/** Whether the logged text is what arrived; where the answer did not finish, only its beginning must be. */
export function agrees(row: Pick<LedgerRow, 'bytes' | 'hash' | 'finished'>, text: string): boolean {
  const logged = Buffer.from(text, 'utf8');
  const bytes = row.finished ? logged : logged.subarray(0, row.bytes);
  return bytes.byteLength === row.bytes && createHash('sha256').update(bytes).digest('hex') === row.hash;
}
