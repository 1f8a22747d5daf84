// The secrets of a machine, as its processes were given them, and where they stand in what those processes wrote.
// In: a machine. Out: values by name, and the lines that hold one.
import { readFileSync } from 'node:fs';
import type { TestMachine } from './machine.js';

const isSecret = /(?:PASSWORD|SECRET|TOKEN|KEY)$/;
/** Shorter ones are found by chance. */
const charactersMin = 16;

type Texts = Readonly<Record<string, string>>;

/** By process and variable, or by place in the data folder's own file; of a key in a file, each line of it. */
export function secretsOf({ specs, data }: TestMachine): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const add = (name: string, value: string) => value.length >= charactersMin && found.set(name, value);
  for (const { name, env } of specs.values())
    for (const [variable, value] of Object.entries(env)) {
      if (variable === 'BACKTALK_TLS_KEY')
        readFileSync(value, 'utf8')
          .split('\n')
          .filter((line) => !line.startsWith('-----'))
          .forEach((line, at) => add(`${name} ${variable} line ${String(at)}`, line));
      else if (variable === 'BACKTALK_VALKEY_URL') add(`${name} ${variable}`, new URL(value).password);
      else if (variable === 'BACKTALK_NATS_MONITOR_URL') add(`${name} ${variable}`, new URL(value).pathname.slice(1));
      else if (isSecret.test(variable)) add(`${name} ${variable}`, value);
    }
  const { passwords, callTokens, ...others } = JSON.parse(readFileSync(data.secrets, 'utf8')) as Record<
    string,
    Texts | string
  >;
  const all = { ...others, ...(passwords as Texts), ...(callTokens as Texts) } as Texts;
  for (const [name, value] of Object.entries(all)) add(`file ${name}`, value);
  return found;
}

/** The names of those that stand in the text, each once. */
export function secretsIn(text: string, secrets: ReadonlyMap<string, string>): string[] {
  return [...secrets].filter(([, value]) => text.includes(value)).map(([name]) => name);
}
