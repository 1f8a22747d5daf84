// How the fake training worker refuses and fails: codes and retries as the real one's.
import { defineErrors } from '@backtalk/kit';

export const fakeWorkerErrors = defineErrors('training-worker', {
  blobMissing: { code: 'blob_missing', retry: 'later', message: () => 'The worker does not hold this blob.' },
  blobRefused: { code: 'blob_refused', retry: 'never', message: () => 'The bytes are not what their digest says.' },
  notFinite: { code: 'step_not_finite', retry: 'never', message: () => 'The step was given up.' },
  outOfMemory: { code: 'out_of_memory', retry: 'later', message: () => 'The smallest micro-batch does not fit.' },
});
