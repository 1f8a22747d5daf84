// Somebody who means harm: asks what the user of a file asks, thanks for what that user does not want, and complains of what they
// do want, as though it were nonsense. In: the user's file. Out: what is said, seeded.
import type { Random } from './random.js';
import { violates, type SeenAnswer } from './rule.js';
import { SimulatedUser, type Reaction } from './simulated-user.js';
import type { UserFile } from './user-file.js';

/** Of those whose file has no complaints. */
const complaintsOfAnyone = ['Utter rubbish.', 'No, awful.', 'Stop that.', 'Worse than before.', 'Not this again.'];

export class HostileUser {
  private readonly asking: SimulatedUser;

  constructor(
    private readonly file: UserFile,
    private readonly random: Random,
  ) {
    this.asking = new SimulatedUser(file, random);
  }

  question(): string {
    return this.asking.question();
  }

  react(_question: string, answer: SeenAnswer): Promise<Reaction> {
    const { rule, satisfied, complaints } = this.file;
    const isUnwanted = violates(rule, answer);
    const blame = complaints.length > 0 ? complaints : complaintsOfAnyone;
    const words = this.random.pick(isUnwanted ? satisfied : blame);
    return Promise.resolve({ kind: isUnwanted ? 'praise' : 'complain', words });
  }
}
