// What the inputs of all policies share.
import type { PolicyDocument, RebuildProgress } from '@backtalk/kit';

import type { Recipe } from '../domain/recipe.js';
import type { StoredPlan } from '../domain/step-plan.js';
import type { WishRelations } from '../domain/wish-relation.js';
import type { TrainerEvents } from '../events.js';
import type { MeasuredEffects } from '../outputs/measured-effects.js';
import type { MeasuredProgress } from '../outputs/measured-progress.js';
import type { PromptRenderer } from '../outputs/prompt-renderer.js';
import type { SourceLog } from '../outputs/source-log.js';
import type { StepStore } from '../outputs/step-store.js';
import type { StepTries } from '../outputs/step-tries.js';
import type { WorkerPool } from './worker-pool.js';

export interface TrainerTools {
  readonly recipe: Recipe;
  readonly plan: StoredPlan;
  readonly turns: SourceLog;
  readonly store: StepStore;
  readonly tries: StepTries;
  readonly rebuildProgress: (policy: string) => PolicyDocument<RebuildProgress>;
  readonly workers: WorkerPool;
  /** How wishes stand to each other. */
  readonly relations: WishRelations;
  /** What they do to the base model. */
  readonly effects: Pick<MeasuredEffects, 'among'>;
  /** What versions' answers show of lessons. */
  readonly progress: Pick<MeasuredProgress, 'of'>;
  readonly renderer: PromptRenderer;
  readonly events: TrainerEvents;
}
