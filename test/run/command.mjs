// Runs one command to its end. In: what to run, where, for how long at most. Out: its status and the end of what it said.
// It kills what it started, with everything below it, when time is up or when this process is asked to stop.
import { spawn } from 'node:child_process';

const outputKeptMax = 200_000;
const quiet = { TURBO_TELEMETRY_DISABLED: '1', DO_NOT_TRACK: '1', NO_COLOR: '1', NO_UPDATE_NOTIFIER: '1' };
/** Images of Python forbid it; then each of many processes would compile torch anew, which takes it twice as long to start. */
const compiledOnce = { PYTHONDONTWRITEBYTECODE: '' };

/** @type {Set<number>} Process groups that run now. */
const running = new Set();

/** @param {number} group */
function kill(group) {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // The group has ended by itself in the meantime.
  }
}

for (const [signal, status] of /** @type {const} */ ([
  ['SIGINT', 130],
  ['SIGTERM', 143],
])) {
  process.on(signal, () => {
    for (const group of running) kill(group);
    process.exit(status);
  });
}

/**
 * @param {readonly string[]} command
 * @param {{ cwd: string, minutes: number, show?: boolean }} options
 * @returns {Promise<{ succeeded: boolean, output: string }>}
 */
export function runCommand([program = 'true', ...args], { cwd, minutes, show = false }) {
  /** @type {import('node:child_process').StdioOptions} */
  const stdio = show ? 'inherit' : ['ignore', 'pipe', 'pipe'];
  const child = spawn(program, args, {
    cwd,
    stdio,
    detached: true,
    env: { ...process.env, ...quiet, ...compiledOnce },
  });
  const group = child.pid;
  if (group !== undefined) running.add(group);
  let output = '';
  /** @param {string} text */
  const keep = (text) => {
    output = (output + text).slice(-outputKeptMax);
  };
  child.stdout?.setEncoding('utf8').on('data', keep);
  child.stderr?.setEncoding('utf8').on('data', keep);
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      keep(`\nThis took longer than ${minutes} minutes and was ended.\n`);
      if (group !== undefined) kill(group);
    }, minutes * 60_000);
    /** @param {boolean} succeeded */
    const end = (succeeded) => {
      clearTimeout(timer);
      if (group !== undefined) running.delete(group);
      resolve({ succeeded, output });
    };
    child.on('error', (error) => {
      keep(`${program} cannot be started: ${error.message}\n`);
      end(false);
    });
    child.on('close', (code) => {
      end(code === 0);
    });
  });
}
