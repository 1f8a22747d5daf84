// A plan for cards in the words of Compose: the variables that deploy/compose.gpu.yaml reads, for `docker compose --env-file`. In:
// what a start on cards would choose. Out: variables, none of them a secret: those come from the environment. Pure.
import { inheritedEnvironment } from '@backtalk/kit';
import type { ChosenOnCards } from './box-choice.js';
import { adapterRank } from './engine-process.js';
import { dtypeOn } from './processes.js';
import { adaptersAtOnce, adaptersKept, rankServed, toolParserOf } from './vllm-program.js';

export function composeVariables(chosen: ChosenOnCards, port: number): Readonly<Record<string, string>> {
  const { box, base, policies, answers = '', votes, checkpoints, device, engine: kind } = chosen;
  const { engines, judge, training } = box;
  const [engine] = engines;
  if (engine === undefined) return {};
  const environment = inheritedEnvironment();
  const rank = adapterRank({ base, environment });
  const profiles = [...(judge === undefined ? [] : ['judge']), ...(checkpoints === undefined ? [] : ['checkpoints'])];
  return {
    BACKTALK_PORT: String(port),
    BACKTALK_POLICIES: policies.join(','),
    BACKTALK_POLICY: policies[0] ?? '',
    BACKTALK_MODEL_FOLDER: engine.model.folder,
    BACKTALK_BASE_MODEL: engine.model.name,
    BACKTALK_LORA_RANK: String(rank),
    BACKTALK_SERVING_CARDS: engine.cards.join(','),
    BACKTALK_SERVING_SPLIT: String(engine.cards.length),
    BACKTALK_SERVING_SHARE: String(engine.share),
    BACKTALK_SERVING_CONTEXT: String(engine.contextTokens),
    BACKTALK_SERVING_ADAPTERS: String(adaptersAtOnce(policies.length)),
    BACKTALK_SERVING_ADAPTERS_KEPT: String(adaptersKept(policies.length)),
    BACKTALK_SERVING_RANK: String(rankServed(rank)),
    BACKTALK_SERVING_TOOLS: toolParserOf(answers),
    ...(judge === undefined
      ? {}
      : {
          BACKTALK_JUDGE_FOLDER: judge.model.folder,
          BACKTALK_JUDGE_MODEL: judge.model.name,
          BACKTALK_JUDGE_URL: 'http://judge-engine:30030',
          BACKTALK_JUDGE_CARDS: judge.cards.join(','),
          BACKTALK_JUDGE_SPLIT: String(judge.cards.length),
          BACKTALK_JUDGE_SHARE: String(judge.share),
          BACKTALK_JUDGE_CONTEXT: String(judge.contextTokens),
        }),
    ...(votes === undefined ? {} : { BACKTALK_JUDGE_VOTES: String(votes) }),
    BACKTALK_DEVICE: device.device,
    BACKTALK_DTYPE: environment['BACKTALK_DTYPE'] ?? dtypeOn(device.device, kind, box),
    ...(training === undefined
      ? {}
      : {
          BACKTALK_TRAINING_CARDS: training.cards.join(','),
          BACKTALK_TRAINING_PROCESSES: String(training.cards.length),
        }),
    ...(base === undefined
      ? {}
      : {
          BACKTALK_RECIPE: base.recipe,
          BACKTALK_RECIPE_SET: `sampleTokensMax=${base.sampleTokens}`,
        }),
    ...(checkpoints === undefined ? {} : { SAVE_CKPT: checkpoints }),
    ...(profiles.length === 0 ? {} : { COMPOSE_PROFILES: profiles.join(',') }),
  };
}
