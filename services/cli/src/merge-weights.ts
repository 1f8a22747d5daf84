// A version merged into its base model: Python does it, where the base lies. In: folders of base and adapter. Out: a folder that
// any program loads which loads the base. It needs the checkout with its Python packages, and memory for the model in float32.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { inheritedEnvironment } from '@backtalk/kit';
import { z } from 'zod';
import type { Connection } from './connection.js';
import { cliErrors } from './errors.js';

const thisCheckout = fileURLToPath(new URL('../../../', import.meta.url));
const laptopModel = 'smollm2-135m-wishes';

/** Into the laptop's base where none is named. One that serves in 4 bits is merged into the numbers that those hold: it learned on them. */
export async function mergeWeights(
  { model: base, quantization = 'none' }: Pick<Connection, 'model' | 'quantization'>,
  adapter: string,
  to: string,
): Promise<void> {
  const venv = join(thisCheckout, '.venv');
  const python = join(venv, 'bin', 'python');
  if (!existsSync(python))
    throw cliErrors.mergeFailed({ why: `it needs Backtalk's Python packages, and ${python} is not here` });
  const model = base ?? join(venv, 'models', laptopModel);
  const how = ['--quantization', quantization];
  const args = ['-W', 'ignore', '-m', 'backtalk_worker.model.merge', model, adapter, to, ...how];
  const env = { ...inheritedEnvironment(), HF_HUB_OFFLINE: '1' };
  try {
    await promisify(execFile)(python, args, { env });
  } catch (error) {
    const said = z.object({ stderr: z.string() }).safeParse(error).data?.stderr.trim().split('\n').at(-1) ?? '';
    throw cliErrors.mergeFailed({ why: said === '' ? 'Python could not do it' : said });
  }
}
