// What of a streamed answer is kept until its turn is stored, and is there room for it?
//
// In: frames in order, and the room of the answer. Out: its capture. Where there is no room for ids and logprobs, all of that
// answer's are let go: chat does not end for the sake of learning. Words without room end it. No I/O.
import { CaptureAccumulator, type Capture, type EngineFrame } from '@backtalk/dialects';
import type { BodyRoom } from './body-budget.js';

export interface Kept {
  readonly capture: Capture;
  /** Ids and logprobs were let go. */
  readonly lackedRoom: boolean;
}

export class KeptAnswer {
  private readonly accumulator = new CaptureAccumulator();
  private roomBytes = 0;
  private lackedRoom = false;

  constructor(private readonly room: BodyRoom) {}

  /** Throws where there is no room for its words. */
  add(frame: EngineFrame): void {
    this.accumulator.add(frame);
    try {
      this.takeRoom();
    } catch (thrown) {
      if (this.lackedRoom) throw thrown;
      this.lackedRoom = true;
      this.accumulator.letIdsGo();
      this.takeRoom();
    }
  }

  kept(): Kept {
    return { capture: this.accumulator.capture(), lackedRoom: this.lackedRoom };
  }

  private takeRoom(): void {
    const { bytes } = this.accumulator;
    const more = bytes - this.roomBytes;
    if (more > 0) this.room.grow(more);
    else this.room.shrink(-more);
    this.roomBytes = bytes;
  }
}
