// Casts scored votes: asks the engine how likely the next state is as the next entry of each list of examples. The
// lists are turned into tokens once for each engine; the engine keeps what it computed of them from vote to vote.
import type { Material } from '../domain/material.js';
import { seedOf } from '../domain/seeds.js';
import { findCalibration, type CalibrationEntry, type CalibrationTable } from '../domain/small-model/calibration.js';
import { likelihoodOf, scoreOf, verdictFromScore, withBias } from '../domain/small-model/score.js';
import { entryOf, saidIn, wordingFor, type Wording } from '../domain/small-model/wordings.js';
import type { CastVote, Label, Likelihoods } from '../domain/verdict.js';
import type { ScoredPrompts } from './labelled-set.js';
import type { JudgeEngine, Voter, VoterFacts, VoteOptions } from './voter.js';

type ListIds = Readonly<Record<Label, readonly number[]>>;

export class ScoredVoter implements Voter {
  /** Bounded by the number of wordings, for each engine. */
  private readonly listIds = new WeakMap<object, Map<string, ListIds>>();

  constructor(
    private readonly prompts: ScoredPrompts,
    private readonly table: Pick<CalibrationTable, 'entries'>,
  ) {}

  async cast(engine: JudgeEngine, material: Material, vote: number, options: VoteOptions): Promise<CastVote> {
    const seed = seedOf(material.place.turn, vote);
    const calibration = this.calibration(engine.model);
    const wording = wordingFor(this.prompts.wordings, material.next.role, vote);
    const bias = wording === undefined ? undefined : calibration?.wordings[wording.id];
    if (wording === undefined || calibration === undefined || bias === undefined) {
      return { valid: false, reason: 'uncalibrated', seed };
    }
    const found = await this.likelihoods(engine, wording, saidIn(material.next), options);
    const score = scoreOf(found, bias);
    const likelihoods = withBias(found, bias);
    return { valid: true, verdict: verdictFromScore(score, calibration), score, likelihoods, hint: '', seed };
  }

  facts(model: string): VoterFacts {
    const { low = 0, high = 0, weights } = this.calibration(model) ?? {};
    return { promptDigest: this.prompts.digest, low, high, ...(weights === undefined ? {} : { weights }) };
  }

  /** How likely the text is as the next entry of each list. */
  async likelihoods(engine: JudgeEngine, wording: Wording, text: string, options: VoteOptions): Promise<Likelihoods> {
    const { client, model } = engine;
    const lists = await this.idsOf(engine, wording, options);
    const answerIds = await client.tokenize({ model, text: entryOf(text) }, options);
    // One call for each list: an engine uses again no more of several prompts than of the shortest.
    const under = async (label: Label) => {
      const [logprobs = []] = await client.score([{ promptIds: lists[label], answerIds }], { model, ...options });
      return likelihoodOf(logprobs);
    };
    const [satisfied, unrelated, correction] = await Promise.all([
      under('satisfied'),
      under('unrelated'),
      under('correction'),
    ]);
    return { satisfied, unrelated, correction };
  }

  private calibration(model: string): CalibrationEntry | undefined {
    return findCalibration(this.table, model, this.prompts.digest);
  }

  private async idsOf({ client, model }: JudgeEngine, { id, lists }: Wording, options: VoteOptions): Promise<ListIds> {
    const known = this.listIds.get(client) ?? new Map<string, ListIds>();
    this.listIds.set(client, known);
    const found = known.get(id);
    if (found !== undefined) return found;
    const [satisfied, unrelated, correction] = await Promise.all([
      client.tokenize({ model, text: lists.satisfied }, options),
      client.tokenize({ model, text: lists.unrelated }, options),
      client.tokenize({ model, text: lists.correction }, options),
    ]);
    const made = { satisfied, unrelated, correction };
    known.set(id, made);
    return made;
  }
}
