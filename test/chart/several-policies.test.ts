// One release that serves and trains several policies: who is told of them, what engines have room for, who trains them.
import { describe, expect, it } from 'vitest';
import { environmentOf, type PodFacts } from './environment.js';
import { render, type Values } from './helm.js';
import { containerOf, podOf, podsOf } from './pods.js';

const facts: PodFacts = { podIp: '', podName: '', secrets: {} };
const values: Values = {
  policy: { name: 'support', others: ['sales', 'legal'] },
  pools: { training: { replicas: 2 } },
};
const objects = render(values);
const environmentIn = (component: string, container: string) =>
  environmentOf(containerOf(podOf(objects, component), container), facts);

describe('several policies', () => {
  it.each([
    ['gateway', 'gateway'],
    ['publisher', 'publisher'],
    ['trainer', 'trainer'],
    ['commands', 'commands'],
    ['engine-serving', 'loader'],
  ])('the %s is told of all of them, by its container %s', (component, container) => {
    expect(environmentIn(component, container)['BACKTALK_POLICIES']).toBe('support,sales,legal');
  });

  it('engines have places for the adapters of each', () => {
    expect(environmentIn('engine-serving', 'engine')['BACKTALK_ENGINE_ADAPTERS_MAX']).toBe('24');
    const gpu = render({ policy: { others: ['sales'] } }, ['ci/gpu-cluster.yaml']);
    const { args } = containerOf(podOf(gpu, 'engine-serving'), 'engine');
    expect(args).toEqual(expect.arrayContaining(['--max-loras=6', '--max-cpu-loras=16']));
    const sglang: Values = { policy: { others: ['sales'] }, pools: { serving: { engine: 'sglang' } } };
    const other = containerOf(podOf(render(sglang, ['ci/gpu-cluster.yaml']), 'engine-serving'), 'engine');
    expect(other.args).toEqual(expect.arrayContaining(['--max-loras-per-batch=7', '--max-loaded-loras=16']));
  });

  it('the trainer is given the address of each training pod, by the names that their Service gives them', () => {
    const set = objects.find(({ kind, metadata }) => kind === 'StatefulSet' && metadata.name.endsWith('-training'));
    expect(set).toMatchObject({ spec: { replicas: 2 } });
    const name = set?.metadata.name ?? '';
    const service = Reflect.get(Reflect.get(set ?? {}, 'spec') as object, 'serviceName') as string;
    expect(environmentIn('trainer', 'trainer')['BACKTALK_TRAINING_WORKER']).toBe(
      `${name}-0.${service}:30026,${name}-1.${service}:30026`,
    );
    expect(objects.some(({ kind, metadata }) => kind === 'Service' && metadata.name === service)).toBe(true);
    expect(podsOf(objects).filter(({ component }) => component === 'training')).toHaveLength(1);
  });
});
