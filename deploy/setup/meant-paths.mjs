// Paths as they were meant: from the folder in which they were typed, which is not the one that the supervisor runs in.
// Takes options and launch variables as they were given; gives those that name a file or a folder as whole paths.

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

const options = new Set(['data', 'restore', 'teacher', 'judge-key-file', 'engine-key-file', 'model']);
/** Variables that a start on cards reads, with the option that each is like. */
const variables = { HF_CKPT: 'model', PRM_MODEL_PATH: 'model', SAVE_CKPT: 'data' };

/** npm runs a script in the folder of its package, and says where it was asked to. */
export const askedIn = (root) =>
  (process.env.npm_package_json === join(root, 'package.json') ? process.env.INIT_CWD : undefined) ?? process.cwd();

/** A model may be one of the hub's, and a teacher none. */
export function optionAsMeant(name, value, folder) {
  if (!options.has(name) || (name === 'teacher' && value === 'none')) return value;
  const there = resolve(folder, value);
  return name === 'model' && !existsSync(there) ? value : there;
}

/** Those of the variables that are set. */
export function variablesAsMeant(environment, folder) {
  const said = Object.keys(variables).filter((name) => (environment[name] ?? '').trim() !== '');
  return Object.fromEntries(
    said.map((name) => [name, optionAsMeant(variables[name], environment[name].trim(), folder)]),
  );
}
