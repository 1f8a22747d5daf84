// What can go wrong with a fact itself: its making, its storing, its reading.
import { defineErrors } from '../errors/backtalk-error.js';

export const factErrors = defineErrors('facts', {
  factSuperseded: {
    code: 'fact_superseded',
    status: 409,
    retry: 'never',
    message: (p: { fact: string; expected: number }) =>
      `Another writer was first: ${p.fact} does not follow sequence ${p.expected} any more.`,
  },
  factTooLarge: {
    code: 'fact_too_large',
    status: 413,
    retry: 'never',
    message: (p: { fact: string; bytes: number; bytesMax: number }) =>
      `${p.fact} has ${p.bytes} bytes; at most ${p.bytesMax} can be stored.`,
  },
  factUndecodable: {
    code: 'fact_undecodable',
    retry: 'never',
    message: (p: { fact: string; sequence: number }) => `${p.fact} at sequence ${p.sequence} cannot be decoded.`,
  },
  notAConsumer: {
    code: 'fact_not_consumed',
    retry: 'stop',
    message: (p: { fact: string; service: string }) =>
      `${p.service} is no consumer of ${p.fact}: the broker would not take its acks. The catalogue of facts names consumers.`,
  },
  factsStopped: {
    code: 'facts_stopped',
    retry: 'later',
    message: () => 'The consumer of facts has stopped.',
  },
  poisonous: {
    code: 'delivered_too_often',
    retry: 'never',
    message: (p: { deliveries: number }) => `The fact was delivered ${p.deliveries} times and never settled.`,
  },
  deadLetterGone: {
    code: 'dead_letter_gone',
    status: 404,
    retry: 'never',
    message: (p: { sequence: number }) => `There is no dead letter ${p.sequence}, or what it points to is gone.`,
  },
});
