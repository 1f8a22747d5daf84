// Is the client still there?
//
// In: a response. Out: a signal that aborts as soon as its connection closes before the answer was over, so that an
// engine does not work for nobody. It does what an AbortSignal would, at a tenth of the cost: every request has one.
import type { ServerResponse } from 'node:http';
import type { CancelSignal } from '@backtalk/dialects';

export class ClientPresence implements CancelSignal {
  private readonly listeners = new Set<() => void>();
  private gone = false;

  constructor(response: ServerResponse) {
    // It may have left while its request was being read.
    this.gone = response.destroyed;
    response.once('close', () => {
      if (!response.writableFinished) this.leave();
    });
  }

  get aborted(): boolean {
    return this.gone;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.listeners.add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.listeners.delete(listener);
  }

  private leave(): void {
    this.gone = true;
    for (const listener of [...this.listeners]) listener();
  }
}
