// How large a sample and a batch may be: far below the 64 MiB that one request to the training worker may have, and small enough that
// what is decoded of one sample fits the memory of a laptop's process. A batch as large as this holds sixteen of the largest samples.
import type { TurnCompleted } from '@backtalk/proto/facts';
import type { TrainSample } from '@backtalk/proto/training';

const mebibyte = 1024 * 1024;
/** Of messages and tools as JSON, and of ids and logprobs; in a request, of all ids and logprobs. */
export const sampleBytesMax = 2 * mebibyte;
export const batchBytesMax = 32 * mebibyte;

const idBytes = 5;
const logprobBytes = 4;

export function idsBytes({
  promptIds,
  answerIds,
  logprobs,
}: Pick<TurnCompleted, 'promptIds' | 'answerIds' | 'logprobs'>): number {
  return (promptIds.length + answerIds.length) * idBytes + logprobs.length * logprobBytes;
}

export function bytesOf(sample: TrainSample): number {
  return idsBytes(sample) + sample.teacherPromptIds.length * idBytes;
}
