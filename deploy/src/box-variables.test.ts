import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import { boxSaid, boxVariables } from './box-variables.js';

/** What OpenClaw-RL's README and its launch scripts (openclaw-rl, openclaw-opd) take from the environment, or set for the server. */
const launchVariables = [
  ...['NUM_GPUS', 'ACTOR_GPUS', 'ROLLOUT_GPUS', 'PRM_GPUS', 'HF_CKPT', 'PRM_MODEL_PATH', 'SAVE_CKPT', 'SGLANG_API_KEY'],
  ...['PORT', 'HOST', 'SERVED_MODEL_NAME', 'TP', 'CONTEXT_LENGTH', 'MEM_FRACTION_STATIC', 'REASONING_PARSER'],
  ...['TOOL_CALL_PARSER', 'REF_LOAD', 'PRM_M', 'PRM_TEMPERATURE', 'PRM_MAX_NEW_TOKENS', 'OPENCLAW_RECORD_ENABLED'],
  ...[
    'OPENCLAW_RECORD_FILE',
    'OPENCLAW_OPD_TEACHER_LP_MAX_CONCURRENCY',
    'OPENCLAW_EVAL_MODE',
    'USE_WANDB',
    'WANDB_KEY',
  ],
  ...['WANDB_API_KEY', 'WANDB_PROJECT', 'MASTER_ADDR'],
];

/** Names of the table's rows, by whether the row says that they are read. */
function documented(): Readonly<Record<'read' | 'unread', readonly string[]>> {
  const text = readFileSync(join(repositoryRoot(), 'docs', 'gpu.md'), 'utf8');
  const [, table = ''] = /\n\| variable +\| what it does here[^\n]*\n\|[^\n]*\n((?:\|[^\n]*\n)+)/.exec(text) ?? [];
  const rows = table.split('\n').map((row) => row.split('|').map((cell) => cell.trim()));
  const namesOf = (isRead: boolean) =>
    rows
      .filter(([, , what = '']) => what !== '' && isRead !== what.startsWith('not read'))
      .flatMap(([, names = '']) => [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => name));
  return { read: namesOf(true), unread: namesOf(false) };
}

it('every variable of the launch scripts has a row that says what it does here, or why it is not read', () => {
  const { read, unread } = documented();
  expect([...read, ...unread].sort()).toEqual([...launchVariables].sort());
  expect([...read].sort()).toEqual([...boxVariables].sort());
});

it('what is empty was not said', () => {
  expect(boxSaid({ NUM_GPUS: ' ', HF_CKPT: '', PRM_M: '5', SAVE_CKPT: '/saved' })).toEqual({
    PRM_M: 5,
    SAVE_CKPT: '/saved',
  });
});
