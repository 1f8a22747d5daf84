// What the supervisor says to the person who started it: one line an event, with the time since the start.
import pc from 'picocolors';

export interface Terminal {
  line(text: string): void;
  step(text: string): void;
  warn(text: string): void;
  table(rows: readonly (readonly [string, string])[]): void;
}

/** A closed pipe or window, a full disk: nothing that runs ends for that. */
const loseWords = () => undefined;

export function createTerminal(out: NodeJS.WritableStream): Terminal {
  // Once, however many terminals write there.
  out.off('error', loseWords).on('error', loseWords);
  const startedAt = performance.now();
  const elapsed = () => `${((performance.now() - startedAt) / 1000).toFixed(1).padStart(5)} s`;
  const line = (text: string) => {
    out.write(`${text}\n`);
  };
  return {
    line,
    step: (text) => {
      line(`${pc.dim(elapsed())}  ${text}`);
    },
    warn: (text) => {
      line(`${pc.dim(elapsed())}  ${pc.yellow('!')} ${text}`);
    },
    table: (rows) => {
      const width = Math.max(...rows.map(([name]) => name.length));
      for (const [name, value] of rows) line(`  ${pc.dim(name.padEnd(width))}  ${value}`);
    },
  };
}
