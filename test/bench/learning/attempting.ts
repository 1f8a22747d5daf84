// An environment that checks: a task is two questions, tried eight times. It says nothing in words; a rule decides of each answer, as an
// exit code does of a command, and of the attempt by both. In: a rule and questions. Out: which version answers once so many steps were taken.
import type OpenAI from 'openai';
import { z } from 'zod';
import { emptyCounts, numberOf, type TalkCounts } from '../../simulate/talk.js';
import { violates } from '../../simulate/user/rule.js';
import type { UserFile } from '../../simulate/user/user-file.js';
import { benchErrors } from '../errors.js';
import { answerTokensMax, type Laboratory } from './laboratory.js';
import type { Reached } from './talking.js';

const attempts = 8;
/** Where most groups fare alike, no batch comes of them. */
const groupsPerStep = 8;
const outcomeWithinMs = 10_000;
const given = z.object({ stored: z.literal(true) });

export class Environment {
  /** Of attempts: those that failed are `corrected`, those that did not are `praised`. */
  readonly counts: TalkCounts;
  private readonly client: OpenAI;
  private groups = 0;

  constructor(
    private readonly laboratory: Laboratory,
    readonly policy: string,
    private readonly file: Pick<UserFile, 'rule' | 'questions'>,
    private readonly say: (progress: string) => void,
  ) {
    this.client = laboratory.client();
    this.counts = emptyCounts(`${policy}-v0`);
  }

  get reached(): Reached {
    const { version } = this.counts;
    return { version, step: numberOf(version) };
  }

  async until(step: number): Promise<Reached> {
    const { counts, laboratory, policy } = this;
    await laboratory.rest(policy, false);
    let left = Math.max(0, step - this.reached.step) * groupsPerStep;
    while (left > 0 && this.reached.step < step) {
      left -= 1;
      await laboratory.decided(policy);
      await this.group();
      this.say(`${counts.version}, ${counts.sessions} attempts, ${counts.praised} came through`);
    }
    if (this.reached.step < step) await laboratory.begun(policy, this.reached.step + 1);
    counts.version = (await laboratory.serving(policy)).version;
    await laboratory.rest(policy, true);
    return this.reached;
  }

  private async group(): Promise<void> {
    const { questions } = this.file;
    const [first = '', second = ''] = [0, 1].map(
      (at) => questions.train[(2 * this.groups + at) % questions.train.length],
    );
    const group = `group-${String(this.groups++)}`;
    await Promise.all(
      Array.from({ length: attempts }, (_, at) => this.attempt([first, second], group, `${group}-${String(at)}`)),
    );
    this.counts.version = (await this.laboratory.serving(this.policy)).version;
  }

  private async attempt(questions: readonly string[], group: string, session: string): Promise<void> {
    const { counts } = this;
    const headers = { 'X-Session-Id': session, 'X-Group-Id': group, 'X-Turn-Type': 'environment' };
    const messages: OpenAI.ChatCompletionMessageParam[] = [];
    let right = 0;
    let observed = '';
    for (const question of questions) {
      messages.push({ role: 'user', content: `${observed}${question}` });
      const body = { model: this.policy, messages, max_completion_tokens: answerTokensMax };
      const [choice] = (await this.client.chat.completions.create(body, { headers })).choices;
      const text = choice?.message.content ?? '';
      const isRight = !violates(this.file.rule, { text, ended: choice?.finish_reason === 'stop' });
      messages.push({ role: 'assistant', content: text });
      observed = `exit code: ${isRight ? '0' : '1'}\n\n`;
      if (isRight) right += 1;
    }
    counts.sessions += 1;
    counts.answers += questions.length;
    if (right === questions.length) counts.praised += 1;
    else counts.corrected += 1;
    await this.outcome(session, (2 * right) / questions.length - 1);
  }

  private async outcome(session: string, score: number): Promise<void> {
    const response = await fetch(`${this.laboratory.machine.gateway}/v1/sessions/${session}/outcome`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ score, attempts }),
      signal: AbortSignal.timeout(outcomeWithinMs),
    });
    if (!given.safeParse(await response.json()).success)
      throw benchErrors.requestFailed({ what: 'an outcome', failed: 1, of: 1 });
  }
}
