// What a person sees while the machine is set up: one line a step, with progress and elapsed time.
// Takes step names and progress texts; writes to standard error. It never decides anything.

const interactive = process.stderr.isTTY === true && process.env.CI === undefined;
const quietIntervalMs = 10_000;

export function say(line) {
  process.stderr.write(`${line}\n`);
}

/** Steps that run now, side by side: what each is called, with its time so far. */
const running = new Set();

/** Without a terminal's width: a log is read in lines of about so many characters. */
const columnsOfLog = 100;
/** npm says what it fetches by its address, pip what it wants by the file that asks for it. */
const fetched = /^npm http \w+ \w+ \d+ \w+:\/\/[^/]+\/(\S+)(?: .*)?$/;
const asked = / \(from .*\)$/;

/** A running step: `progress(text)` updates its line, `done()` and `failed()` end it. */
export function beginStep(label) {
  const startedAt = Date.now();
  let text = '';
  let saidAt = Date.now();
  const seconds = () => `${String(Math.round((Date.now() - startedAt) / 1000))} s`;
  const draw = () => {
    const width = process.stderr.columns ?? columnsOfLog;
    const line = `  … ${[...running].map((named) => named()).join(', ')} ${text}`;
    process.stderr.write(`\r\u001b[2K${line.slice(0, width - 1)}`);
  };
  const named = () => `${label} (${seconds()})`;
  running.add(named);
  const timer = setInterval(() => {
    if (interactive) draw();
    else if (Date.now() - saidAt >= quietIntervalMs) {
      saidAt = Date.now();
      say(`  … ${named()} ${text}`.slice(0, columnsOfLog));
    }
  }, 250);
  timer.unref();
  const end = (mark) => {
    clearInterval(timer);
    running.delete(named);
    if (interactive) process.stderr.write('\r\u001b[2K');
    say(`  ${mark} ${named()}`);
  };
  return {
    progress(next) {
      text = next.trim().replace(/\s+/g, ' ').replace(fetched, '$1').replace(asked, '');
      if (interactive) draw();
    },
    done: () => end('✓'),
    failed: () => end('✗'),
  };
}
