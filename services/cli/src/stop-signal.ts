// The signals that end a command. It imports nothing, so that they are heard before the commands are loaded: the first
// process of a container has no default handling of SIGTERM. Ctrl-C is left to the command, which may have something to
// put in order; pressed again, it ends the process. SIGTERM comes from a supervisor, which waits for the end and then kills:
// it is obeyed within a second, whatever the command does.

/** For a command that listens to the signal: to close its connections. */
const endsWithinMs = 1_000;

/** 128 and the signal's number, as a shell reports a process that it ended. SIGHUP: its terminal is gone. */
const statusOf = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** Aborts when the process is asked to stop. */
export function stopSignal(): AbortSignal {
  const ending = new AbortController();
  process.on('SIGINT', () => {
    if (ending.signal.aborted) process.exit(statusOf.SIGINT);
    ending.abort();
  });
  for (const signal of ['SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      process.exitCode = statusOf[signal];
      ending.abort();
      // A command that waits for something else than the signal is cut.
      setTimeout(() => process.exit(statusOf[signal]), endsWithinMs).unref();
    });
  return ending.signal;
}
