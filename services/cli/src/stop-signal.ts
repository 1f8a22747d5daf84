// The signals that end a command. It imports nothing, so that they are heard before the commands are loaded: the first
// process of a container has no default handling of SIGTERM. Ctrl-C is left to the command, which may have something to
// put in order; pressed again a second later, it ends the process. Sooner it may be the same one, which npm passes on
// although the terminal has sent it to the process, too. SIGTERM comes from a supervisor, which waits for the end and
// then kills: it is obeyed within a second, whatever the command does.

/** For a command that listens to the signal: to close its connections. What is sent again sooner is the same wish. */
const endsWithinMs = 1_000;

/** 128 and the signal's number, as a shell reports a process that it ended. SIGHUP: its terminal is gone. */
const statusOf = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** Of a command that was interrupted before it had done all, and says what it did. */
export const interruptedStatus = statusOf.SIGINT;

/** Aborts when the process is asked to stop. */
export function stopSignal(now: () => number = () => performance.now()): AbortSignal {
  const ending = new AbortController();
  let interruptedAt: number | undefined;
  process.on('SIGINT', () => {
    const at = now();
    if (interruptedAt !== undefined && at - interruptedAt >= endsWithinMs) process.exit(statusOf.SIGINT);
    interruptedAt ??= at;
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
