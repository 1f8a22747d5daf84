// What whole-loop tests borrow from the trainer.
export {
  FakeTrainingWorker,
  type FakeStep,
  type FakeTrainingWorkerOptions,
  type StepPlot,
} from './fake-training-worker.js';
export { fakeWorkerErrors } from './fake-worker-errors.js';
