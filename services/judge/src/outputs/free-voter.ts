// Casts free votes: the model reads the turn, thinks in words and ends with a grade, and with a hint where the user
// gave one. Its prompt has the room that the model's context and the budget of a verdict leave.
import { Asking, isEngineError, type AskingEvents, type Question } from '@backtalk/dialects';
import { sha256Hex } from '@backtalk/kit';
import { readReply } from '../domain/free-reply.js';
import { answerSchema, fixedTokens, freePrompt, freeWordings } from '../domain/free-vote.js';
import type { Material } from '../domain/material.js';
import type { CastVote } from '../domain/verdict.js';
import { seedOf } from '../domain/seeds.js';
import { answerTokensMax, defaultBudget, promptTokens, type VoteBudget } from '../domain/vote-budget.js';
import type { JudgeEngine, Voter, VoteOptions } from './voter.js';

export interface FreeVoterEvents extends AskingEvents {
  /** An engine counted more tokens than were estimated: its prompts are shorter from then on. */
  promptShortened(model: string): void;
}

const silent: FreeVoterEvents = {
  asked: () => undefined,
  fieldsRefused: () => undefined,
  promptShortened: () => undefined,
};
/** Halves of the room, at most; below, nothing of a turn would be left. */
const shortenedMax = 3;

export class FreeVoter implements Voter {
  readonly promptDigest = sha256Hex(JSON.stringify(templates()));
  private readonly asking: Asking;
  /** Tokens of the model's context, and how often the room was halved, by engine. */
  private readonly contexts = new WeakMap<object, number>();
  private readonly halvings = new WeakMap<object, number>();

  constructor(
    private readonly budget: VoteBudget = defaultBudget,
    private readonly events: FreeVoterEvents = silent,
  ) {
    this.asking = new Asking(events);
  }

  async cast(engine: JudgeEngine, material: Material, vote: number, options: VoteOptions): Promise<CastVote> {
    const seed = seedOf(material.place.turn, vote);
    const room = promptTokens(this.budget, await this.contextOf(engine, options));
    // Nothing of the turn would be left, and a grade of nothing says nothing.
    if (room < fixedTokens) return { valid: false, reason: 'no_room', seed };
    const said = await this.ask(engine, room, options, (tokensMax) => ({
      prompt: (isForced) => freePrompt(material, { wording: vote, isForced, tokensMax }),
      schema: answerSchema,
      seed,
      answerTokensMax,
      thinkingTokensMax: this.budget.thinkingTokens,
    }));
    const read = readReply(said);
    if (read === undefined) return { valid: false, reason: said.isWhole ? 'unparsable' : 'cut', seed };
    const hint = material.next.role === 'user' ? read.hint : '';
    return { valid: true, verdict: read.verdict, hint, seed };
  }

  private async ask(
    engine: JudgeEngine,
    room: number,
    options: VoteOptions,
    question: (tokensMax: number) => Question,
  ): Promise<{ readonly text: string; readonly isWhole: boolean }> {
    for (;;) {
      const halvings = this.halvings.get(engine.client) ?? 0;
      try {
        return await this.asking.ask(engine, question(Math.floor(room / 2 ** halvings)), options);
      } catch (error) {
        const isLast = halvings >= shortenedMax || room / 2 ** (halvings + 1) < fixedTokens;
        if (isLast || !isEngineError(error, 'context_length_exceeded')) throw error;
        // Votes that are cast at the same time learn of one halving together.
        this.halvings.set(engine.client, halvings + 1);
        this.events.promptShortened(engine.model);
      }
    }
  }

  private async contextOf({ client, model }: JudgeEngine, options: VoteOptions): Promise<number> {
    const known = this.contexts.get(client);
    if (known !== undefined) return known;
    try {
      const models = await client.models(options);
      const named = models.find(({ id }) => id === model) ?? models.find(({ parent }) => parent === undefined);
      const found = named?.maxContext ?? this.budget.contextTokens;
      this.contexts.set(client, found);
      return found;
    } catch (error) {
      // Some addresses have no list of models; whether the engine is there, the vote itself finds out.
      if (isEngineError(error, 'engine_unsupported', 'engine_reply_invalid'))
        this.contexts.set(client, this.budget.contextTokens);
      return this.budget.contextTokens;
    }
  }
}

/** All wordings for all roles and forms around empty pieces: what the digest stands for. */
function templates(): unknown[] {
  const place = { turn: '', tenant: '', user: '', policy: '', session: '' };
  return (['user', 'tool', 'environment'] as const).flatMap((role) =>
    [true, false].flatMap((isForced) =>
      Array.from({ length: freeWordings }, (_, wording) => {
        const next = { role, text: '', userText: '', toolResults: [] };
        const material = { place, conversation: [], question: '', answer: '', thoughts: '', version: '', next };
        return freePrompt(material, { wording, isForced, tokensMax: 0 });
      }),
    ),
  );
}
