// What can go wrong between a service and a key-value bucket.
import { defineErrors } from '../errors/define-errors.js';

export const kvErrors = defineErrors('kv', {
  kvConflict: {
    code: 'kv_conflict',
    status: 409,
    retry: 'never',
    message: (p: { bucket: string; key: string }) => `Somebody else has changed ${p.key} in bucket ${p.bucket}.`,
  },
  kvKeyInvalid: {
    code: 'kv_key_invalid',
    retry: 'never',
    message: (p: { bucket: string }) =>
      `A key of bucket ${p.bucket} is made of letters, digits, "-", "_" and "=", in parts with dots between.`,
  },
  kvValueInvalid: {
    code: 'kv_value_invalid',
    retry: 'never',
    message: (p: { bucket: string; key: string }) => `The value of ${p.key} in bucket ${p.bucket} cannot be read.`,
  },
});
