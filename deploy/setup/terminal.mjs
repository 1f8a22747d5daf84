// What a person sees while the machine is set up: one line a step, with progress and elapsed time.
// Takes step names and progress texts; writes to standard error. It never decides anything.

const interactive = process.stderr.isTTY === true && process.env.CI === undefined;
const quietIntervalMs = 10_000;

export function say(line) {
  process.stderr.write(`${line}\n`);
}

/** A running step: `progress(text)` updates its line, `done()` and `failed()` end it. */
export function beginStep(label) {
  const startedAt = Date.now();
  let text = '';
  let saidAt = Date.now();
  const seconds = () => `${String(Math.round((Date.now() - startedAt) / 1000))} s`;
  const draw = () => {
    const width = process.stderr.columns ?? 100;
    const line = `  … ${label} (${seconds()}) ${text}`;
    process.stderr.write(`\r\u001b[2K${line.slice(0, width - 1)}`);
  };
  const timer = setInterval(() => {
    if (interactive) draw();
    else if (Date.now() - saidAt >= quietIntervalMs) {
      saidAt = Date.now();
      say(`  … ${label} (${seconds()}) ${text}`);
    }
  }, 250);
  timer.unref();
  const end = (mark) => {
    clearInterval(timer);
    if (interactive) process.stderr.write('\r\u001b[2K');
    say(`  ${mark} ${label} (${seconds()})`);
  };
  return {
    progress(next) {
      text = next.trim().replace(/\s+/g, ' ');
      if (interactive) draw();
    },
    done: () => end('✓'),
    failed: () => end('✗'),
  };
}
