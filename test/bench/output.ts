// The only place that writes: results to standard output, progress to standard error, so that `--json` can be piped.

const interactive = process.stderr.isTTY;

export interface Output {
  /** One line of the result. */
  line(text: string): void;
  /** What is being done now: replaces the last progress on a terminal, is a line of its own elsewhere. */
  progress(text: string): void;
  /** The last progress is over. */
  settle(text: string): void;
}

export function createOutput(): Output {
  const startedAt = performance.now();
  const elapsed = () => `${((performance.now() - startedAt) / 1000).toFixed(0).padStart(4)} s`;
  const drawn = (text: string) => `${elapsed()}  ${text}`;
  return {
    line: (text) => {
      process.stdout.write(`${text}\n`);
    },
    progress: (text) => {
      const line = drawn(`… ${text}`);
      process.stderr.write(interactive ? `\r\u001b[2K${line.slice(0, process.stderr.columns - 1)}` : `${line}\n`);
    },
    settle: (text) => {
      process.stderr.write(`${interactive ? '\r\u001b[2K' : ''}${drawn(text)}\n`);
    },
  };
}
