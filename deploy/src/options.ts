// Command-line options of the supervisor, checked: what is wrong is named with what is wanted.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { deployErrors } from './errors.js';

export interface Options {
  readonly verb: 'start' | 'reset';
  readonly data: string;
  readonly dataCapBytes: number;
  readonly port: number;
  readonly host: string;
  readonly yes: boolean;
  /** Folder of a backup that a new data folder starts from. */
  readonly restore: string | undefined;
}

const units: Readonly<Record<string, number>> = { MB: 1e6, GB: 1e9, TB: 1e12 };
const highestOffset = 42;

function readSize(text: string): number {
  const found = /^(\d+(?:\.\d+)?)\s*(MB|GB|TB)$/i.exec(text.trim());
  const unit = units[found?.[2]?.toUpperCase() ?? ''];
  if (found?.[1] === undefined || unit === undefined) {
    throw deployErrors.badOption({ option: 'data-cap', value: text, wanted: 'a size such as 500MB or 10GB' });
  }
  return Number(found[1]) * unit;
}

function readPort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1024 || port + highestOffset > 65_535) {
    throw deployErrors.badOption({
      option: 'port',
      value: text,
      wanted: `a port from 1024 to ${String(65_535 - highestOffset)}`,
    });
  }
  return port;
}

export function readOptions(args: readonly string[], root: string): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      data: { type: 'string', default: '.backtalk' },
      'data-cap': { type: 'string', default: '10GB' },
      port: { type: 'string', default: '30000' },
      host: { type: 'string', default: '127.0.0.1' },
      yes: { type: 'boolean', default: false },
      restore: { type: 'string' },
    },
  });
  return {
    verb: positionals[0] === 'reset' ? 'reset' : 'start',
    data: resolve(root, values.data),
    dataCapBytes: readSize(values['data-cap']),
    port: readPort(values.port),
    host: values.host,
    yes: values.yes,
    restore: values.restore === undefined ? undefined : resolve(root, values.restore),
  };
}
