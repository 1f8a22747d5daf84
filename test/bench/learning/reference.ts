// Fixed sentences that no lesson is about: how surprising they are to a version, and how often it finds the right one likelier
// than the wrong one. In: an engine and a model's name. Out: mean nats a token, and a share.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EngineClient, ScoreItem } from '@backtalk/dialects';
import { z } from 'zod';
import { root } from '../../loop/machine.js';

const sentences = z.array(z.object({ question: z.string(), right: z.string(), wrong: z.string() }));
const withinMs = 300_000;
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

export class ReferenceSet {
  private constructor(
    private readonly right: readonly ScoreItem[],
    private readonly wrong: readonly ScoreItem[],
  ) {}

  /** @param base whose template and tokens are those of every version */
  static async read(engine: EngineClient, base: string): Promise<ReferenceSet> {
    const path = join(root, 'test', 'bench', 'learning', 'reference.json');
    const listed = sentences.parse(JSON.parse(readFileSync(path, 'utf8')));
    const tokens = (text: string) => engine.tokenize({ model: base, text }, { deadlineMs: withinMs });
    const right: ScoreItem[] = [];
    const wrong: ScoreItem[] = [];
    for (const one of listed) {
      const messages = [{ role: 'user', content: one.question }];
      const promptIds = await engine.tokenize({ model: base, messages }, { deadlineMs: withinMs });
      right.push({ promptIds, answerIds: await tokens(one.right) });
      wrong.push({ promptIds, answerIds: await tokens(one.wrong) });
    }
    return new ReferenceSet(right, wrong);
  }

  async measure(engine: EngineClient, model: string): Promise<{ readonly nll: number; readonly skill: number }> {
    const options = { model, deadlineMs: withinMs };
    const right = await engine.score(this.right, options);
    const wrong = (await engine.score(this.wrong, options)).map(sum);
    const tokens = sum(right.map(({ length }) => length));
    const found = right.filter((logprobs, index) => sum(logprobs) > (wrong[index] ?? 0));
    return { nll: -sum(right.map(sum)) / tokens, skill: found.length / right.length };
  }
}
