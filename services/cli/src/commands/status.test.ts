import { createServer, type Server } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { partStatus } from './status.js';

let server: Server;

afterEach(() => new Promise((resolve) => server.close(resolve)));

/** Health and metrics of a part that is ready. */
async function readyPart(metrics: string): Promise<string> {
  server = createServer((request, response) => response.end(request.url === '/metrics' ? metrics : '{}'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? (address?.port ?? 0) : 0}`;
}

it('a judge whose votes do not count is ready, and status says that they do not', async () => {
  const url = await readyPart('# TYPE x gauge\nbacktalk_judge_votes_trusted 0\n');
  const why = 'its votes do not count: too few planted turns are judged right';
  expect(await partStatus('judge', url)).toEqual({ part: 'judge', url, ready: true, why });
});

it('a judge whose votes count has nothing to say', async () => {
  const url = await readyPart('backtalk_judge_votes_trusted 1\n');
  expect(await partStatus('judge', url)).toEqual({ part: 'judge', url, ready: true, why: '' });
});

it('says what a judge that reads has used, and what its engine refuses', async () => {
  const metrics = [
    'backtalk_judge_requests_total{outcome="answered"} 30',
    'backtalk_judge_requests_total{outcome="engine_overloaded"} 2',
    'backtalk_judge_tokens_total{kind="prompt"} 9000',
    'backtalk_judge_tokens_total{kind="cached"} 18000',
    'backtalk_judge_tokens_total{kind="answer"} 1500',
    'backtalk_judge_cost_total 0.01234',
    'backtalk_judge_fields_refused{field="response_format"} 1',
  ];
  const used =
    '32 requests, 2 engine_overloaded: 9000 tokens of prompts, 18000 more from a cache, 1500 written, cost 0.0123';
  const { ready, why } = await partStatus('judge', await readyPart(`${metrics.join('\n')}\n`));
  expect({ ready, why }).toEqual({ ready: true, why: `since its start ${used}; its engine forces no form of answers` });
});

it('says with which code the newest step of a training worker failed, and how often', async () => {
  const metrics = [
    'backtalk_training_steps_total{outcome="finished"} 3.0',
    'backtalk_training_steps_total{outcome="service_unavailable"} 7.0',
    'backtalk_training_last_step_failed{code="service_unavailable"} 1.0',
  ];
  const { ready, why } = await partStatus('training-worker', await readyPart(`${metrics.join('\n')}\n`));
  expect({ ready, why }).toEqual({
    ready: true,
    why: 'its newest step failed: service_unavailable, 7 times since its start',
  });
});

it('status says in words that a step failed once', async () => {
  const metrics =
    'backtalk_training_steps_total{outcome="out_of_memory"} 1.0\nbacktalk_training_last_step_failed{code="out_of_memory"} 1.0\n';
  const { why } = await partStatus('training-worker', await readyPart(metrics));
  expect(why).toBe('its newest step failed: out_of_memory, once since its start');
});

it('a training worker whose newest step ended well has nothing to say of those that failed before', async () => {
  const url = await readyPart('backtalk_training_steps_total{outcome="out_of_memory"} 2.0\n');
  expect(await partStatus('training-worker', url)).toMatchObject({ ready: true, why: '' });
});
