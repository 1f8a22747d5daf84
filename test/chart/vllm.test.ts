// How the chart starts a vLLM for agents: it refuses each request that has tools where two flags are missing (test/contracts/vllm-0.32/06-errors.txt).
import { expect, it } from 'vitest';
import { render, valuesFiles, type Values } from './helm.js';
import { containerOf, podsOf } from './pods.js';

const toolFlag = /^--(?:enable-auto-tool-choice|tool-call-parser)/;

/** What each vLLM is told of tools, by its component. */
function toolFlagsOf(values: Values, file: string): Readonly<Record<string, readonly string[]>> {
  const pods = podsOf(render(values, [file])).filter(({ component }) => component.startsWith('engine-'));
  const engines = pods.map((pod) => [pod.component, containerOf(pod, 'engine')] as const);
  const ofVllm = engines.filter(([, { command }]) => command.join(' ').includes('vllm.entrypoints'));
  return Object.fromEntries(
    ofVllm.map(([component, { args }]) => [component, args.filter((arg) => toolFlag.test(arg))]),
  );
}

const both = ['--enable-auto-tool-choice', '--tool-call-parser=hermes'];
const ofServing = (pool: object) => toolFlagsOf({ pools: { serving: pool } }, 'ci/one-gpu.yaml')['engine-serving'];

it('every vLLM that versions answer on takes requests with tools, by every values file', () => {
  const told = valuesFiles.map((file) => toolFlagsOf({}, file)).filter((engines) => 'engine-serving' in engines);
  expect(told.length).toBeGreaterThanOrEqual(6);
  for (const { 'engine-judge': judge = [], ...others } of told) {
    expect(judge).toEqual([]);
    for (const [component, flags] of Object.entries(others)) expect(flags, component).toEqual(both);
  }
});

it('vLLM reads calls as its pool says, and none where that is nothing', () => {
  expect(ofServing({ toolParser: 'llama3_json' })).toEqual([both[0], '--tool-call-parser=llama3_json']);
  expect(ofServing({ toolParser: '' })).toEqual([]);
});

it('vLLM is told once what the reader’s own arguments say', () => {
  const extraArgs = ['--enable-auto-tool-choice', '--tool-call-parser=mistral'];
  expect(ofServing({ extraArgs })).toEqual(extraArgs);
  expect(ofServing({ extraArgs: ['--tool-call-parser', 'mistral'] })).toEqual([both[0], '--tool-call-parser']);
});
