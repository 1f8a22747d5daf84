// Fixed sentences that no lesson is about: how surprising they are to a version, and how often it finds the right one likelier
// than the wrong one. In: an engine, a model's name, and a wish where one is shown. Out: mean nats a token, and a share.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EngineClient, ScoreItem } from '@backtalk/dialects';
import { z } from 'zod';
import { root } from '../../loop/machine.js';
import type { Row } from './result.js';

const sentences = z.array(z.object({ question: z.string(), right: z.string(), wrong: z.string() }));
const withinMs = 300_000;
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

type Reference = NonNullable<Row['reference']>;

interface Fixed {
  readonly question: string;
  readonly right: readonly number[];
  readonly wrong: readonly number[];
}

export class ReferenceSet {
  private constructor(
    private readonly engine: EngineClient,
    private readonly base: string,
    private readonly fixed: readonly Fixed[],
  ) {}

  /** @param base whose template and tokens are those of every version */
  static async read(engine: EngineClient, base: string): Promise<ReferenceSet> {
    const path = join(root, 'test', 'bench', 'learning', 'reference.json');
    const listed = sentences.parse(JSON.parse(readFileSync(path, 'utf8')));
    const tokens = (text: string) => engine.tokenize({ model: base, text }, { deadlineMs: withinMs });
    const fixed: Fixed[] = [];
    for (const { question, right, wrong } of listed)
      fixed.push({ question, right: await tokens(right), wrong: await tokens(wrong) });
    return new ReferenceSet(engine, base, fixed);
  }

  /** @param wish shown after each question, where one is */
  async measure(model: string, wish = ''): Promise<Reference> {
    const { engine, base, fixed } = this;
    const right: ScoreItem[] = [];
    const wrong: ScoreItem[] = [];
    for (const one of fixed) {
      const messages = [{ role: 'user', content: wish === '' ? one.question : `${one.question}\n\n${wish}` }];
      const promptIds = await engine.tokenize({ model: base, messages }, { deadlineMs: withinMs });
      right.push({ promptIds, answerIds: one.right });
      wrong.push({ promptIds, answerIds: one.wrong });
    }
    const options = { model, deadlineMs: withinMs };
    const found = await engine.score(right, options);
    const others = (await engine.score(wrong, options)).map(sum);
    const tokens = sum(found.map(({ length }) => length));
    const twins = found.map((logprobs, index) => sum(logprobs) > (others[index] ?? 0));
    return { nll: -sum(found.map(sum)) / tokens, skill: twins.filter(Boolean).length / twins.length, twins };
  }
}
