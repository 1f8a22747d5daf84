import type { Hearing } from '../domain/hints/hindsight.js';
import { readStandingSentences } from '../outputs/labelled-set.js';

/** As a judge hears that comes with its fitted words. */
export const hearing: Hearing = { choice: 'longest', standing: readStandingSentences() };
