import { defineErrors, type FactReader } from '@backtalk/kit';
import { expect, it } from 'vitest';
import type { Case } from '../domain/cases.js';
import { LessonCases } from './lesson-cases.js';

const thrown = defineErrors('blobs', {
  missing: { code: 'blob_missing', retry: 'later', message: () => 'It is not there.' },
  corrupt: { code: 'blob_corrupt', retry: 'never', message: () => 'It is damaged.' },
  undecodable: { code: 'fact_undecodable', retry: 'never', message: () => 'It cannot be read.' },
  failed: { code: 'blob_store_failed', status: 503, retry: 'later', message: () => 'The store is away.' },
});
const asked = { turn: 'turn1', tenant: 't', user: 'u' } as Case;

function casesBehind(error: Error): LessonCases {
  const reader = { last: () => Promise.reject(error) } as unknown as FactReader;
  return new LessonCases(reader, 'backtalk', { perLesson: 2, most: 8, heldFrom: 0.5 });
}

const requestBehind = (error: Error) => casesBehind(error).request(asked);

it.each([thrown.missing({}), thrown.corrupt({}), thrown.undecodable({})])(
  'a batch that cannot be read ($code) has no cases, so that versions are decided without them',
  async (error) => {
    expect(await casesBehind(error).forVersion(1)).toEqual([]);
  },
);

it('a store that is away is waited for: a batch behind it has its cases when it is back', async () => {
  await expect(casesBehind(thrown.failed({})).forVersion(1)).rejects.toMatchObject({ code: 'blob_store_failed' });
});

it('a turn whose payload is lost is no case, so that versions are decided without it', async () => {
  expect(await requestBehind(thrown.missing({}))).toBeUndefined();
});

it('a store that is away is waited for: its turns are cases when it is back', async () => {
  await expect(requestBehind(thrown.failed({}))).rejects.toMatchObject({ code: 'blob_store_failed' });
});
