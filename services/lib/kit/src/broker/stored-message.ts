// A stored message, however it was fetched.
import type { MsgHdrs } from 'nats';

export interface StoredMessage {
  readonly subject: string;
  readonly sequence: number;
  /** The broker's time, milliseconds since 1970. */
  readonly timeMs: number;
  readonly headers: MsgHdrs | undefined;
  readonly data: Uint8Array;
}
