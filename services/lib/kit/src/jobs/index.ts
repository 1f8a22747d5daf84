export { jobErrors } from './errors.js';
export {
  jobQueue,
  type AddOptions,
  type FailedJob,
  type JobCounts,
  type JobQueue,
  type JobQueueOptions,
} from './job-queue.js';
export { jobWorker, type JobInHand, type JobWorker, type JobWorkerOptions } from './job-worker.js';
export {
  checkValkey,
  connectionOptions,
  connectValkey,
  valkeyError,
  type ValkeyOptions,
  type ValkeyRole,
} from './valkey.js';
