// A simulated user as a file: what this person wishes, when an answer violates it, and what they say. In: a name of one in
// `test/simulate/users`, or a path. Out: the file's contents, checked. A file that cannot be used is refused by what is wrong.
import { z } from 'zod';
import { userErrors } from './errors.js';
import { readJsonFile, refuseKnown } from './json-file.js';

const regexFlags = z.string().regex(/^[imsu]*$/, 'flags are letters of "imsu"');
const searched = { pattern: z.string().min(1), flags: regexFlags.default('') };
const count = z.int().min(1);
const violation = z.discriminatedUnion('op', [
  z.strictObject({ op: z.literal('matches'), pattern: searched.pattern, flags: searched.flags }),
  z.strictObject({ op: z.literal('not_matches'), pattern: searched.pattern, flags: searched.flags }),
  z.strictObject({ op: z.literal('words_over'), max: count }),
  z.strictObject({ op: z.literal('words_under'), min: count }),
  /** The answer was cut by its token limit. */
  z.strictObject({ op: z.literal('cut') }),
]);
export const ruleSchema = z.strictObject({ violates_if: z.array(violation).min(1) });
const sayings = z.array(z.string().trim().min(1));
const userFile = z.strictObject({
  wish: z.string().trim().min(1),
  rule: ruleSchema,
  corrections: sayings.min(1),
  satisfied: sayings.min(1),
  /** Said now and then in place of thanks. */
  follow_ups: sayings.default([]),
  /** Said of an answer that shares no word with its question. */
  complaints: sayings.default([]),
  questions: z.strictObject({ train: sayings.min(1), heldout: sayings.min(2) }),
});

export type Violation = z.infer<typeof violation>;
export type UserFile = z.infer<typeof userFile>;

export function readUser(nameOrPath: string): UserFile {
  const file = readJsonFile('users', nameOrPath, userFile);
  for (const [index, one] of file.rule.violates_if.entries()) {
    if ('pattern' in one && !isPattern(one.pattern, one.flags))
      throw userErrors.userInvalid({
        name: nameOrPath,
        why: `rule.violates_if.${String(index)}.pattern is no regular expression`,
      });
  }
  refuseKnown(nameOrPath, 'questions', file.questions.train, file.questions.heldout);
  return file;
}

function isPattern(source: string, flags: string): boolean {
  try {
    new RegExp(source, flags);
    return true;
  } catch {
    return false;
  }
}
