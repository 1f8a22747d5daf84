// Casts free votes: the model reads the turn, thinks in words and ends with a grade, and with a hint where the user
// gave one.
import { inWords } from '@backtalk/dialects';
import { sha256Hex } from '@backtalk/kit';
import { freePrompt, freeWordings, readFreeAnswer } from '../domain/free-vote.js';
import type { Material } from '../domain/material.js';
import type { CastVote } from '../domain/verdict.js';
import { seedOf } from '../domain/seeds.js';
import type { JudgeEngine, Voter, VoterFacts, VoteOptions } from './voter.js';

export class FreeVoter implements Voter {
  private readonly digest = sha256Hex(JSON.stringify(templates()));

  async cast(engine: JudgeEngine, material: Material, vote: number, options: VoteOptions): Promise<CastVote> {
    const seed = seedOf(material.place.turn, vote);
    const read = readFreeAnswer(await inWords(engine, (token) => freePrompt(material, token, vote), seed, options));
    if (read === undefined) return { valid: false, reason: 'unparsable', seed };
    const hint = material.next.role === 'user' ? read.hint : '';
    return { valid: true, verdict: read.verdict, score: read.verdict, hint, seed };
  }

  facts(): VoterFacts {
    return { promptDigest: this.digest, low: 0, high: 0 };
  }
}

/** All wordings for all roles around empty pieces: what the digest stands for. */
function templates(): unknown[] {
  const place = { turn: '', tenant: '', user: '', policy: '', session: '' };
  return (['user', 'tool', 'environment'] as const).flatMap((role) =>
    Array.from({ length: freeWordings }, (_, wording) => {
      const next = { role, text: '', userText: '', toolResults: [] };
      return freePrompt(
        { place, conversation: [], question: '', answer: '', thoughts: '', version: '', next },
        'token',
        wording,
      );
    }),
  );
}
