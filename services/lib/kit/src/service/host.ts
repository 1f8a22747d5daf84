// What `run` needs of the process around it. Tests give another host; everything else runs on `processHost`.

export type HostEvent = 'SIGTERM' | 'SIGINT' | 'uncaughtException' | 'unhandledRejection';

export interface Host {
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>> | undefined;
  on(event: HostEvent, listener: (reason: unknown) => void): void;
  print(text: string): void;
  complain(text: string): void;
  exit(code: number): void;
}

export const processHost: Host = {
  arguments: process.argv.slice(2),
  // Undefined lets readConfig read the environment itself.
  environment: undefined,
  on: (event, listener) => {
    process.on(event, listener);
  },
  print: (text) => {
    process.stdout.write(`${text}\n`);
  },
  complain: (text) => {
    process.stderr.write(`${text}\n`);
  },
  exit: (code) => {
    process.exit(code);
  },
};
