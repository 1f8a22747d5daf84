// Measures the data folder every minute, and says in good time that its cap comes near.

import { folderBytes } from './data-folder.js';
import type { Terminal } from './terminal.js';

const everyMs = 60_000;
const warnShare = 0.8;

export class SizeWatch {
  private timer: NodeJS.Timeout | undefined;
  private warned = 0;

  constructor(
    private readonly path: string,
    private readonly capBytes: number,
    private readonly terminal: Terminal,
  ) {}

  start(): void {
    this.look();
    this.timer = setInterval(() => {
      this.look();
    }, everyMs);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private look(): void {
    const share = folderBytes(this.path) / this.capBytes;
    const level = share >= 1 ? 2 : share >= warnShare ? 1 : 0;
    if (level > this.warned) {
      const cap = `${(this.capBytes / 1e9).toFixed(1)} GB`;
      this.terminal.warn(
        level === 2
          ? `${this.path} is larger than its cap of ${cap}: old turns are no longer kept until there is room (--data-cap, npm run reset)`
          : `${this.path} holds ${(share * 100).toFixed(0)} % of its cap of ${cap}`,
      );
    }
    this.warned = level;
  }
}
