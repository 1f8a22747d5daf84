// How an error stands in the log. In: anything thrown. Out: what it is, where it came from, and words that are ours. Of
// foreign errors no field is taken (a client's error carries the command that failed, password and all), and no quoted
// part of a message (a parser quotes what it could not read).
import { BacktalkError } from '../errors/backtalk-error.js';

const causesMax = 5;
const wordsMax = 300;

interface Written {
  readonly type?: string;
  readonly code?: string | number;
  readonly retry?: string;
  readonly message: string;
  readonly stack?: string;
  readonly cause?: Written;
}

export function writtenError(thrown: unknown): Written {
  return written(thrown, causesMax);
}

function written(thrown: unknown, causes: number): Written {
  if (!(thrown instanceof Error)) return { type: typeof thrown, message: leftOut };
  const { cause } = thrown;
  const rest = {
    stack: framesOf(thrown),
    ...(cause === undefined || causes === 0 ? {} : { cause: written(cause, causes - 1) }),
  };
  if (thrown instanceof BacktalkError) {
    const { code, retry, message } = thrown;
    return Object.assign({ code, retry, message: withoutCredentials(message) }, rest);
  }
  const code: unknown = Reflect.get(thrown, 'code');
  const codes = typeof code === 'string' || typeof code === 'number' ? { code } : {};
  return Object.assign({ type: thrown.name, message: wordsOf(thrown) }, codes, rest);
}

const leftOut = '(left out)';

/** Errors whose words are made from what they were given: what does not parse, what does not fit, what a peer said. */
const quoting: ReadonlySet<string> = new Set(['SyntaxError', 'ZodError', '$ZodError', 'ClientError', 'ServerError']);

function wordsOf(error: Error): string {
  // Of an S3 server's answer the name says what it was.
  if (quoting.has(error.name) || Reflect.has(error, '$metadata')) return leftOut;
  // The system's own words: a call and what it was about.
  const isOfSystem = typeof Reflect.get(error, 'syscall') === 'string';
  // From the first quotation mark to the last: what is quoted may hold quotation marks.
  const words = isOfSystem ? error.message : error.message.replace(/["'`][^]*["'`]/, '(left out)');
  return withoutCredentials(words.slice(0, wordsMax));
}

function withoutCredentials(words: string): string {
  return words.replaceAll(/:\/\/[^\s/@]{1,256}@/g, '://…@');
}

/** A stack begins with the message. */
function framesOf({ stack = '', message }: Error): string {
  const at = stack.indexOf(message);
  const frames = at === -1 ? stack : stack.slice(at + message.length);
  return frames
    .split('\n')
    .filter((line) => /^ {4}at /.test(line))
    .join('\n');
}
