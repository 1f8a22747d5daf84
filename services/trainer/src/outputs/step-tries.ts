// How often the step of a policy's open batch was tried, counted before each try, so that a try that ends the process counts as well.
// A count that is lost costs further tries and nothing else.
import { triedStep, type Broker, type TriedStep } from '@backtalk/kit';

export class StepTries {
  constructor(private readonly broker: Broker) {}

  async of(policy: string, batch: number): Promise<TriedStep> {
    const tried = (await triedStep(this.broker, policy).get())?.value;
    return tried?.batch === batch ? tried : { batch, tries: 0, code: '' };
  }

  /** Only the leader writes, and it reads before. */
  async keep(policy: string, tried: TriedStep): Promise<void> {
    await triedStep(this.broker, policy).put(tried);
  }
}
