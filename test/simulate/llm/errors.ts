// Why a model that plays or scores could not be asked. What was said to it, and what it said, stands in no message.
import { defineErrors } from '@backtalk/kit';

interface Asked {
  /** `The user's model reader at https://host/v1`, or the scorer's. */
  readonly who: string;
  readonly why: string;
}

export const llmErrors = defineErrors('simulate-llm', {
  /** What no waiting mends: the run ends. */
  refused: { code: 'llm_refused', retry: 'never', message: ({ who, why }: Asked) => `${who} ${why}.` },
  /** It may answer later: the session ends, and the run where that happens again and again. */
  away: { code: 'llm_away', retry: 'later', message: ({ who, why }: Asked) => `${who} ${why}.` },
});
