// People talk, in turn and several at once, until their policy has taken so many steps or until they have said enough.
// In: people. Out: which version answers then. Learning rests from then on, so that what is measured stays loaded.
import type OpenAI from 'openai';
import { emptyCounts, numberOf, talkOnce, type TalkCounts, type Talker } from '../../simulate/talk.js';
import { answerTokensMax, type Laboratory } from './laboratory.js';

export interface Person {
  readonly client: OpenAI;
  readonly policy: string;
  readonly user: Talker;
  /** Of a session; the endpoint's own where there is none. */
  readonly temperature?: () => number;
}

export interface Reached {
  readonly version: string;
  readonly step: number;
}

const together = 4;
const sessionsPerStep = 24;
/** Twice what a batch needs: what is said beyond that is said to weights that are about to go. */
const correctionsPerStep = 16;
const repliesMax = 1;
const lastTokensMax = 8;

/** Everything that is said to one policy, counted. */
export class Talk {
  readonly counts: TalkCounts;
  private turn = 0;
  /** What had been corrected when the newest version began to answer, or when more was waited for in vain. */
  private heard = { version: '', corrected: 0 };

  constructor(
    private readonly laboratory: Laboratory,
    readonly policy: string,
    private readonly say: (progress: string) => void,
  ) {
    this.counts = emptyCounts(`${policy}-v0`);
  }

  get reached(): Reached {
    const { version } = this.counts;
    return { version, step: numberOf(version) };
  }

  /** @param people take turns from one session to the next */
  async until(step: number, people: readonly Person[]): Promise<Reached> {
    const { counts, laboratory, policy } = this;
    await laboratory.rest(policy, false);
    let left = Math.max(0, step - this.reached.step) * sessionsPerStep;
    const lane = async () => {
      while (left > 0 && this.reached.step < step) {
        left -= 1;
        await laboratory.decided(policy);
        await this.enough();
        await this.session(people);
        this.say(`${counts.version}, ${counts.sessions} sessions, ${counts.corrected} corrected`);
      }
    };
    await Promise.all(Array.from({ length: together }, lane));
    if (this.reached.step < step) await this.heardOut(people);
    await laboratory.rest(policy, true);
    return this.reached;
  }

  /** Sessions, one after the other, until something was said that a batch is closed for. */
  async untilTaught(person: Person): Promise<void> {
    const { counts, laboratory, policy } = this;
    do {
      await this.session([person]);
      this.say(`${counts.sessions} sessions, ${counts.corrected} corrected`);
    } while (counts.sessions < sessionsPerStep && !(await laboratory.begins(policy)));
  }

  /** People who have said what makes a step wait for it: the trainer may still be measuring lessons. */
  private async enough(): Promise<void> {
    const { counts, heard, laboratory, policy } = this;
    if (counts.version !== heard.version) this.heard = { version: counts.version, corrected: counts.corrected };
    else if (counts.corrected - heard.corrected >= correctionsPerStep) {
      await laboratory.begun(policy, this.reached.step + 1);
      this.heard = { version: counts.version, corrected: counts.corrected };
    }
  }

  /** What was said last may be in no step yet: the trainer measures lessons first. */
  private async heardOut(people: readonly Person[]): Promise<void> {
    await this.laboratory.begun(this.policy, this.reached.step + 1);
    await this.session(people);
  }

  private async session(people: readonly Person[]): Promise<void> {
    const person = people[this.turn++ % people.length];
    if (person === undefined) return;
    const temperature = person.temperature?.();
    const own = {
      client: person.client,
      model: person.policy,
      user: person.user,
      maxTokens: answerTokensMax,
      repliesMax,
      lastTokensMax,
    };
    await talkOnce(temperature === undefined ? own : { ...own, temperature }, this.counts);
  }
}
