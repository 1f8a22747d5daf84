// Writes frames to one client without waiting for it, up to a bound.
//
// In: text. Out: bytes on the connection; frames that come in the same moment leave in one write. A client that reads
// slower than the engine writes has `bufferBytesMax` of room, or what its key's share has left; then the engine is made to
// wait, and a client that still reads nothing is cut.
import type { ServerResponse } from 'node:http';
import { gatewayErrors } from '../errors.js';
import type { BodyRoom } from '../domain/body-budget.js';

const bufferBytesMax = 1024 * 1024;
/** A client that reads its answer drop by drop is cut all the same: the whole of it may take as many waits. */
const waitsMax = 12;

export class StreamWriter {
  private corked = false;
  /** What of the buffer has room. */
  private roomBytes = 0;

  constructor(
    private readonly response: ServerResponse,
    private readonly room: BodyRoom,
    private readonly waitMs: number,
  ) {
    response.on('drain', () => this.hasRoom());
  }

  /** False when the buffer is full: wait for `drained` before the next. */
  write(text: string): boolean {
    if (text === '') return true;
    if (!this.corked) {
      this.corked = true;
      this.response.cork();
      process.nextTick(() => {
        this.corked = false;
        this.response.uncork();
      });
    }
    this.response.write(text);
    // What a connection takes at once waits for no one, and only beyond it `drain` is said.
    if (!this.hasRoom() && this.response.writableNeedDrain) return false;
    return this.response.writableLength < bufferBytesMax;
  }

  /** What comes last waits for nothing: it is there already. */
  end(text: string): void {
    this.response.end(text);
    this.hasRoom();
  }

  /** Takes room for what the client has not read yet, or gives back what it has. */
  private hasRoom(): boolean {
    const bytes = this.response.writableLength;
    const more = bytes - this.roomBytes;
    if (more <= 0) this.room.shrink(-more);
    else if (!this.room.mayGrow(more)) return false;
    this.roomBytes = bytes;
    return true;
  }

  /** Rejects with `reader_too_slow`, and cuts the connection, when the client reads nothing for so long. */
  drained(): Promise<void> {
    return new Promise((resolve, reject) => {
      const { response } = this;
      const { socket } = response;
      const settle = (): void => {
        socket?.setTimeout(0).off('timeout', onTimeout);
        response.off('drain', onDrain).off('close', onClose);
      };
      const onTimeout = (): void => {
        settle();
        response.destroy();
        reject(gatewayErrors.readerTooSlow());
      };
      const onDrain = (): void => {
        settle();
        resolve();
      };
      const onClose = (): void => {
        settle();
        reject(gatewayErrors.clientGone());
      };
      // The socket's own timer begins again with every piece that is read.
      socket?.setTimeout(this.waitMs).on('timeout', onTimeout);
      response.on('drain', onDrain).on('close', onClose);
    });
  }
}

/**
 * Resolves when an answer that has ended lies with the client, or its connection is closed. False when it was cut,
 * because nothing of it was read for so long, or not all of it in `waitsMax` times as long.
 */
export function delivered(response: ServerResponse, waitMs: number): Promise<boolean> | boolean {
  const { socket } = response;
  if (socket === null || socket.destroyed || socket.writableLength === 0) return true;
  return new Promise((resolve) => {
    const settle = (isRead: boolean): void => {
      clearTimeout(deadline);
      socket.off('timeout', cut);
      resolve(isRead);
    };
    const cut = (): void => {
      settle(false);
      response.destroy();
    };
    const deadline = setTimeout(cut, waitsMax * waitMs);
    // The socket's own timer begins again with every piece that is read.
    socket.setTimeout(waitMs).on('timeout', cut);
    response.once('finish', () => settle(true));
    response.once('close', () => settle(true));
  });
}
