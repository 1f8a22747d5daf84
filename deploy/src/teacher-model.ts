// Another model that teaches in the base's place. In: what --teacher says, or what the last start was told, and what the environment
// sets. Out: its folder, or one line that says why it cannot teach. Whether its tokens are the base's is the training worker's to see.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { inheritedEnvironment, modelConfig, unservable } from '@backtalk/kit';
import { jsonOf } from './base-model.js';
import type { Choosing } from './chosen-models.js';
import { lastTeacher } from './connection.js';
import { deployErrors } from './errors.js';

/** Takes away what an earlier start was told. */
export const noTeacher = 'none';

/** Of this start, and said where there is one. */
export function chosenTeacher({ options, data, terminal }: Choosing): { readonly teacher?: string } {
  const teacher = teacherModel(options.teacher, lastTeacher(data), inheritedEnvironment());
  if (teacher === undefined) return {};
  terminal.step(`teacher: ${teacher} (--teacher; none: the one of the recipe)`);
  return { teacher };
}

/** Undefined: who the recipe says, without a model of its own. */
export function teacherModel(
  flag: string | undefined,
  kept: string | undefined,
  environment: Readonly<Record<string, string>>,
): string | undefined {
  const folder = flag === noTeacher ? undefined : (flag ?? kept);
  if (folder === undefined) {
    if (asksForOther(environment) && (environment['BACKTALK_TEACHER_MODEL_DIR'] ?? '') === '')
      throw deployErrors.noTeacher();
    return undefined;
  }
  const missing = ['config.json', 'tokenizer.json'].find((name) => !existsSync(join(folder, name)));
  if (missing !== undefined) throw deployErrors.teacherRefused({ folder, why: `it has no ${missing}` });
  const config = modelConfig.safeParse(jsonOf(join(folder, 'config.json')));
  const why = config.success ? unservable(config.data) : 'its config.json cannot be read';
  if (why !== undefined) throw deployErrors.teacherRefused({ folder, why });
  return folder;
}

const asksForOther = ({ BACKTALK_RECIPE_SET: set = '' }: Readonly<Record<string, string>>) =>
  set
    .split(',')
    .map((pair) => pair.replaceAll(/\s/g, ''))
    .includes('teacher=other');
