// The flags that the chart and Compose give to vLLM, read by vLLM's own parser: a flag that it does not know would end the pod.
// In: values files and the compose file. Out: whether every command line is understood; starts no engine.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { z } from 'zod';
import { render, valuesFiles } from '../chart/helm.js';
import { containersOf, podsOf } from '../chart/pods.js';
import { root } from '../loop/machine.js';
import { vllmCommand } from './engine-program.js';
import { minute, type Finding } from './exercise.js';

const compose = z.looseObject({ services: z.looseObject({ engine: z.looseObject({ command: z.array(z.string()) }) }) });

export async function flagsAreKnown(): Promise<readonly Finding[]> {
  const lines = [...chartLines(), composeLine()];
  const script = join(root, 'test', 'vllm', 'parse_flags.py');
  const parsing = promisify(execFile)(vllmCommand, [script], { timeout: 5 * minute });
  parsing.child.stdin?.end(lines.map((line) => JSON.stringify(line)).join('\n'));
  const { understood, complaint } = await parsing.then(
    ({ stdout }) => ({ understood: stdout.split('\n').filter((line) => line.startsWith('{')).length, complaint: '' }),
    (error: unknown) => ({ understood: 0, complaint: String(error).trim().split('\n').at(-1) ?? '' }),
  );
  const what = "vLLM understands the chart's and Compose's flags";
  const figure = complaint === '' ? `${String(understood)} command lines` : complaint;
  return [{ what, holds: understood === lines.length && lines.length > 1, figure }];
}

function chartLines(): string[][] {
  const containers = valuesFiles.flatMap((file) => podsOf(render({}, [file])).flatMap(containersOf));
  return containers.filter(({ image }) => image.includes('vllm/vllm-openai')).map(({ args }) => args);
}

function composeLine(): string[] {
  const text = readFileSync(join(root, 'deploy', 'compose.gpu.yaml'), 'utf8');
  const file: unknown = parse(text, { merge: true, customTags: [{ tag: '!reset', resolve: () => null }] });
  return compose.parse(file).services.engine.command.map(asByDefault);
}

/** As Compose reads it where no variable is set; what has to be set is any name. */
const asByDefault = (word: string) =>
  word.replaceAll(/\$\{\w+(?::-([^}]*)|:\?[^}]*)?\}/g, (_, standard: string | undefined) => standard ?? 'name');
