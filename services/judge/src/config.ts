// What the judge reads from its environment.
import { baseSettings, installationSettings, setting, settings, type ConfigOf } from '@backtalk/kit';
import { fixedTokens } from './domain/free-vote.js';
import { hintChoices } from './domain/hints/choose.js';
import { answerTokensMax } from './domain/vote-budget.js';

const { natsUrl, natsUser, natsPassword, valkeyUrl, healthAddress, logLevel, ackWaitMs, instance } = baseSettings;

const atLeastOneRules = ['always', 'agree', 'off'] as const;

const shape = {
  natsUrl,
  natsUser,
  natsPassword,
  valkeyUrl,
  healthAddress,
  logLevel,
  ackWaitMs,
  instance,
  ...installationSettings,
  engineHosts: baseSettings.engineHosts,
  backend: baseSettings.judgeBackend,
  votes: setting.integer('BACKTALK_JUDGE_VOTES', {
    description: 'Votes for each turn.',
    default: 3,
    min: 1,
    max: 15,
  }),
  engineUrls: baseSettings.judgeUrls,
  engineDialect: baseSettings.judgeDialect,
  engineKey: setting.string('BACKTALK_ENGINE_KEY', {
    description: 'Key that the engines ask for; empty where they ask for none.',
    default: '',
    secret: true,
  }),
  model: baseSettings.judgeModel,
  verdictTokens: setting.integer('BACKTALK_JUDGE_VERDICT_TOKENS', {
    description:
      'Tokens that all votes of one verdict may have together (backend free): prompts, estimated at three bytes each, thoughts and answers.',
    default: 24_000,
    min: 2_000,
  }),
  thinkingTokens: setting.integer('BACKTALK_JUDGE_THINKING_TOKENS', {
    description:
      'Tokens that a vote may think for before its answer of 512 (backend free); 0 switches thoughts off where the template of the model can.',
    default: 0,
    min: 0,
  }),
  contextTokens: setting.integer('BACKTALK_JUDGE_CONTEXT_TOKENS', {
    description: 'Context of the model that votes, where its engine does not say (backend free).',
    default: 8_192,
    min: 2_048,
  }),
  pricePrompt: setting.number('BACKTALK_JUDGE_PRICE_PROMPT', {
    description: 'Price of a million tokens of prompts, in any currency; 0: costs are not counted.',
    default: 0,
    min: 0,
  }),
  priceCached: setting.number('BACKTALK_JUDGE_PRICE_CACHED_SHARE', {
    description: 'Share of that price for tokens that the model had in its cache and says so.',
    default: 1,
    min: 0,
    max: 1,
  }),
  priceAnswer: setting.number('BACKTALK_JUDGE_PRICE_ANSWER', {
    description: 'Price of a million tokens that the model writes, thoughts among them.',
    default: 0,
    min: 0,
  }),
  voteShare: setting.number('BACKTALK_JUDGE_VOTE_SHARE', {
    description: 'Share of turns that get votes, 0 to 1, drawn by turn; evidence alone decides the others.',
    default: 1,
    min: 0,
    max: 1,
  }),
  plantedShare: setting.number('BACKTALK_JUDGE_PLANTED_SHARE', {
    description:
      'Share of the turns with votes beside which a turn of known verdict is judged, to watch the judge; after a start all, until 20 were judged. 0 is none.',
    default: 0.02,
    min: 0,
    max: 1,
  }),
  plantedAccuracyMin: setting.number('BACKTALK_JUDGE_PLANTED_MIN', {
    description:
      'Share of the newest 40 planted turns (20 suffice) that must be judged right, or votes do not count until they are; a third is chance.',
    default: 0.5,
    min: 0,
    max: 1,
  }),
  versionsBehind: setting.integer('BACKTALK_JUDGE_VERSIONS_BEHIND', {
    description:
      'Versions that may have begun to answer since the next state was said, or since the answer; beyond, evidence alone decides. 0 is no bound.',
    default: 3,
    min: 0,
    max: 64,
  }),
  voteWaitMs: setting.durationMs('BACKTALK_JUDGE_VOTE_WAIT', {
    description: 'The longest time that one try of a vote may take.',
    default: '60s',
    min: 100,
  }),
  voteConcurrency: setting.integer('BACKTALK_JUDGE_VOTE_CONCURRENCY', {
    description: 'Votes that this process casts at the same time.',
    default: 2,
    min: 1,
    max: 256,
  }),
  turnsInFlight: setting.integer('BACKTALK_JUDGE_TURNS_IN_FLIGHT', {
    description: 'Turns whose facts this process holds while votes are cast; it bounds the queue of votes.',
    default: 8,
    min: 1,
    max: 1024,
  }),
  queueCheckMs: setting.durationMs('BACKTALK_JUDGE_QUEUE_CHECK', {
    description:
      'How often it is checked that turns in flight have their votes in the queue, and how long the queue is.',
    default: '2s',
    min: 50,
  }),
  hintChoice: setting.oneOf('BACKTALK_JUDGE_HINT_CHOICE', hintChoices, {
    description:
      'Which of several accepted hints teaches; overlap: the one under which the likeliest tokens of teacher and policy agree most, found in the step.',
    default: 'longest',
  }),
  atLeastOne: setting.oneOf('BACKTALK_JUDGE_AT_LEAST_ONE', atLeastOneRules, {
    description:
      'What a closed session without any effective sample gives: always its best candidate, only if two thirds of fresh votes agree, or nothing.',
    default: 'agree',
  }),
};

/** A vote that cannot be shown the turn, or cannot answer, is none. */
export const judgeSettings = settings(shape, ({ backend, votes, verdictTokens, thinkingTokens, contextTokens }) => {
  if (backend !== 'free') return [];
  const needed = fixedTokens + answerTokensMax + thinkingTokens;
  return [
    ...(verdictTokens >= votes * needed
      ? []
      : [
          `BACKTALK_JUDGE_VERDICT_TOKENS is too small for BACKTALK_JUDGE_VOTES votes with BACKTALK_JUDGE_THINKING_TOKENS each: make it ${String(votes * needed)} or more.`,
        ]),
    ...(contextTokens >= needed
      ? []
      : ['BACKTALK_JUDGE_CONTEXT_TOKENS has no room for BACKTALK_JUDGE_THINKING_TOKENS and a prompt: raise it.']),
  ];
});

export type JudgeConfig = ConfigOf<typeof judgeSettings>;
