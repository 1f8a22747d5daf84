// What commands print. People get tables and sentences, programs get JSON; progress and complaints go to standard error.
import { SingleBar } from 'cli-progress';
import pc from 'picocolors';

export interface Progress {
  update(done: number, text: string): void;
  stop(): void;
}

export interface Output {
  readonly json: boolean;
  /** For people only. */
  line(text?: string): void;
  /** For people only: a part of a line. */
  piece(text: string): void;
  table(header: readonly string[], rows: readonly (readonly string[])[]): void;
  /** For programs only: one JSON value a line. */
  value(value: unknown): void;
  progress(label: string, total: number): Progress;
  complain(text: string): void;
}

const quietProgressEveryMs = 15_000;

/**
 * What users and models wrote moves no cursor, sets no colour or title and turns no words round: all control characters go but
 * line ends and tabs, and what overrides the direction of writing.
 */
const shown = (text: string) => text.replace(/(?![\n\t])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu, '');

export function createOutput(
  json: boolean,
  out: NodeJS.WriteStream = process.stdout,
  err: NodeJS.WriteStream = process.stderr,
): Output {
  const write = (text: string) => {
    if (!json) out.write(text);
  };
  return {
    json,
    line: (text = '') => {
      write(`${shown(text)}\n`);
    },
    piece: (text) => {
      write(shown(text));
    },
    table: (header, given) => {
      const rows = given.map((row) => row.map((cell) => shown(cell).replace(/[\n\t]+/g, ' ')));
      const widths = header.map((name, column) =>
        Math.max(name.length, ...rows.map((row) => (row[column] ?? '').length)),
      );
      const format = (row: readonly string[]) =>
        row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd();
      write(`${pc.bold(format(header))}\n`);
      for (const row of rows) write(`${format(row)}\n`);
    },
    value: (value) => {
      if (json) out.write(`${JSON.stringify(value)}\n`);
    },
    progress: (label, total) => (err.isTTY ? barProgress(label, total, err) : lineProgress(label, total, err)),
    complain: (text) => {
      err.write(`${shown(text)}\n`);
    },
  };
}

function barProgress(label: string, total: number, stream: NodeJS.WriteStream): Progress {
  const bar = new SingleBar({
    stream,
    format: `${label} {bar} {value}/{total} · {text} · {duration_formatted}`,
    hideCursor: true,
    clearOnComplete: true,
  });
  bar.start(total, 0, { text: '' });
  return {
    update: (done, text) => {
      bar.update(done, { text });
    },
    stop: () => {
      bar.stop();
    },
  };
}

/** Where no terminal draws a bar: a line from time to time, of work that takes long. */
function lineProgress(label: string, total: number, stream: NodeJS.WriteStream): Progress {
  let saidAt = Date.now();
  let said = false;
  return {
    update: (done, text) => {
      const now = Date.now();
      if (now - saidAt < quietProgressEveryMs && !(said && done >= total)) return;
      saidAt = now;
      said = true;
      stream.write(`${label} ${String(done)}/${String(total)} · ${text}\n`);
    },
    stop: () => undefined,
  };
}
