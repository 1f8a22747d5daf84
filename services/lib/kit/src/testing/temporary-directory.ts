// A folder that lives as long as a test.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class TemporaryDirectory {
  readonly path: string;
  private readonly onExit = () => {
    this.remove();
  };

  constructor(name = 'test') {
    this.path = mkdtempSync(join(tmpdir(), `backtalk-${name}-`));
    process.once('exit', this.onExit);
  }

  join(...parts: readonly string[]): string {
    return join(this.path, ...parts);
  }

  remove(): void {
    process.off('exit', this.onExit);
    rmSync(this.path, { recursive: true, force: true });
  }
}
