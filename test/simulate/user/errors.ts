// Why a user cannot be simulated.
import { defineErrors } from '@backtalk/kit';

export const userErrors = defineErrors('simulated-user', {
  userInvalid: {
    code: 'user_invalid',
    retry: 'never',
    message: (p: { name: string; why: string }) => `The user ${p.name} cannot be simulated: ${p.why}.`,
  },
});
