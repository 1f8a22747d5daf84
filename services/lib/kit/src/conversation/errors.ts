// What can be wrong with a stored conversation.
import { defineErrors } from '../errors/define-errors.js';

export const conversationErrors = defineErrors('kit', {
  unreadable: {
    code: 'conversation_unreadable',
    retry: 'never',
    message: ({ what }: { what: string }) => `A stored conversation cannot be decoded: ${what}.`,
  },
});
