// Why a run cannot be simulated as it was asked for.
import { defineErrors } from '@backtalk/kit';

export const simulateErrors = defineErrors('simulate', {
  badArgument: {
    code: 'bad_argument',
    retry: 'never',
    message: (p: { name: string; value: string; wanted: string }) => `${p.name} '${p.value}' is not ${p.wanted}.`,
  },
  modelAway: {
    code: 'model_away',
    retry: 'later',
    message: (p: { option: string; url: string; task: string; why: string }) =>
      `--${p.option} ${p.url} cannot ${p.task}: ${p.why}.`,
  },
});
