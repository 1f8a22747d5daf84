import { defineErrors, type FactReader } from '@backtalk/kit';
import { expect, it } from 'vitest';
import type { Case } from '../domain/cases.js';
import { LessonCases } from './lesson-cases.js';

const thrown = defineErrors('blobs', {
  missing: { code: 'blob_missing', retry: 'later', message: () => 'It is not there.' },
  failed: { code: 'blob_store_failed', status: 503, retry: 'later', message: () => 'The store is away.' },
});
const asked = { turn: 'turn1', tenant: 't', user: 'u' } as Case;

function requestBehind(error: Error) {
  const reader = { last: () => Promise.reject(error) } as unknown as FactReader;
  return new LessonCases(reader, 'backtalk', { perLesson: 2, most: 8, heldFrom: 0.5 }).request(asked);
}

it('a turn whose payload is lost is no case, so that versions are decided without it', async () => {
  expect(await requestBehind(thrown.missing({}))).toBeUndefined();
});

it('a store that is away is waited for: its turns are cases when it is back', async () => {
  await expect(requestBehind(thrown.failed({}))).rejects.toMatchObject({ code: 'blob_store_failed' });
});
