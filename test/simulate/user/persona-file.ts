// A persona as a file: who a model plays, how this person judges an answer, and what they ask. In: a name of one in
// `test/simulate/personas`, or a path. Out: the file's contents, checked. Two readers share it: who plays is told who the person
// is and how they judge, who scores is told how they judge and the scale.
import { z } from 'zod';
import { readJsonFile, refuseKnown } from './json-file.js';

const prose = z.string().trim().min(1).max(4_000);
const tasks = z.array(prose);
const personaFile = z.strictObject({
  name: z.string().regex(/^[\w-]{1,64}$/, 'a name is letters, digits, - and _'),
  /** `You are …` */
  who: prose,
  /** What this person wants of an answer, and what they do not mind. */
  judges: prose,
  /** The same as one standing instruction, shown to the base for the row that shows what obeying would reach. */
  wish: prose,
  /** What scores from 0 to 1 mean. */
  scale: z.array(z.strictObject({ score: z.number().min(0).max(1), means: prose })).min(2),
  tasks: z.strictObject({ train: tasks.min(1), heldout: tasks.min(2) }),
});

export type PersonaFile = z.infer<typeof personaFile>;

export function readPersona(nameOrPath: string): PersonaFile {
  const file = readJsonFile('personas', nameOrPath, personaFile);
  refuseKnown(nameOrPath, 'tasks', file.tasks.train, file.tasks.heldout);
  return file;
}
