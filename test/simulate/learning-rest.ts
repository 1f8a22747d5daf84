// Learning rests while versions are measured, so that none is replaced before its turn. In: an installation. Out: its learning switch,
// put back as it was found. What an operator has said goes before, whenever it was said: a pause stays, and so does a hold.
import { switchLearning } from '@backtalk/cli';

type Installation = Parameters<typeof switchLearning>[0];
type Switch = NonNullable<ReturnType<Parameters<typeof switchLearning>[1]>>;

/** What stood there before, and the revision of what stands there since. */
interface Taken {
  readonly before: Switch | undefined;
  readonly revision: number;
}

export class LearningRest {
  private taken: Taken | undefined;

  constructor(private readonly installation: Installation) {}

  /** What is left to do where the process ends now; empty where nothing is. */
  get leftToDo(): string {
    return this.taken === undefined
      ? ''
      : `Learning of ${this.installation.policy} is left paused: npx backtalk resume`;
  }

  async set(resting: boolean): Promise<void> {
    await (resting ? this.begin() : this.end());
  }

  private async begin(): Promise<void> {
    let before: Switch | undefined;
    const revision = await switchLearning(this.installation, (found) => {
      before = found?.value;
      return before?.paused === true ? undefined : { ...before, paused: true };
    });
    if (revision !== undefined) this.taken = { before, revision };
  }

  private async end(): Promise<void> {
    const { taken } = this;
    if (taken === undefined) return;
    await switchLearning(this.installation, (found) =>
      found?.revision === taken.revision ? { ...taken.before, paused: false } : undefined,
    );
    this.taken = undefined;
  }
}
