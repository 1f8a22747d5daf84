// How the stand-ins refuse: with the codes of what they stand for.
import { defineErrors } from '@backtalk/kit';

export const standInErrors = defineErrors('stand-in', {
  blobMissing: { code: 'blob_missing', retry: 'later', message: () => 'The worker does not hold this blob.' },
  blobRefused: { code: 'blob_refused', retry: 'never', message: () => 'The bytes are not what their digest says.' },
});
