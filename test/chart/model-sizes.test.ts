// The values files by size of model, against the memory that `backtalk fit` reckons: what they ask for fits the cards that they
// name, and cards of the next size down would not do.
import { adapterParameters, fitOf, modelConfig, parametersOf, type Wanted } from '@backtalk/kit';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { render } from './helm.js';
import { podsOf, type Container } from './pods.js';

const qwen = { architectures: ['Qwen3ForCausalLM'], max_position_embeddings: 40_960, vocab_size: 151_936 };
const heads = { num_key_value_heads: 8, head_dim: 128 };
const shapes = {
  '1-2b': { hidden_size: 2_048, intermediate_size: 6_144, num_hidden_layers: 28, num_attention_heads: 16 },
  '4-8b': { hidden_size: 4_096, intermediate_size: 12_288, num_hidden_layers: 36, num_attention_heads: 32 },
  '8b-24gb': { hidden_size: 4_096, intermediate_size: 12_288, num_hidden_layers: 36, num_attention_heads: 32 },
  '32b': { hidden_size: 5_120, intermediate_size: 25_600, num_hidden_layers: 64, num_attention_heads: 64 },
};
const rank = 16;

const affinity = z.object({
  nodeAffinity: z.object({
    requiredDuringSchedulingIgnoredDuringExecution: z.object({
      nodeSelectorTerms: z.tuple([
        z.object({
          matchExpressions: z.tuple([
            z.object({
              key: z.literal('nvidia.com/gpu.memory'),
              operator: z.literal('Gt'),
              values: z.tuple([z.coerce.number()]),
            }),
          ]),
        }),
      ]),
    }),
  }),
});

function leastCardBytes(spec: object): number {
  const { nodeAffinity } = affinity.parse((spec as { affinity?: unknown }).affinity);
  const [{ matchExpressions }] = nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
  return matchExpressions[0].values[0] * 2 ** 20;
}

function flag(container: Container | undefined, name: string): string | undefined {
  return container?.args.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
}

const gibibytes = (text: unknown) => Number(String(text).replace(/Gi$/, '')) * 2 ** 30;
const envOf = (container: Container | undefined, name: string) =>
  container?.env.find((variable) => variable.name === name)?.value;

describe.each([
  { size: '1-2b', card: 24e9, smaller: 16e9, conversations: 4, tied: true, context: 32_768, quantization: 'none' },
  { size: '4-8b', card: 80e9, smaller: 48e9, conversations: 11, tied: false, context: 32_768, quantization: 'none' },
  { size: '8b-24gb', card: 24e9, smaller: 16e9, conversations: 6, tied: false, context: 14_336, quantization: 'nf4' },
  { size: '32b', card: 141e9, smaller: 80e9, conversations: 7, tied: false, context: 32_768, quantization: 'none' },
] as const)('ci/models-$size.yaml', ({ size, card, smaller, conversations, tied, context, quantization }) => {
  const shape = modelConfig.parse({ ...qwen, ...heads, ...shapes[size], tie_word_embeddings: tied });
  const parameters = parametersOf(shape) ?? 0;
  const pods = podsOf(render({}, [`ci/models-${size}.yaml`]));
  const podOf = (pool: string) => pods.find(({ component }) => component.includes(pool));
  const serving = podOf('serving');
  const training = podOf('training');
  const engine = serving?.spec.containers.find((one) => one.args.some((word) => word.startsWith('--max-model-len')));
  const worker = training?.spec.containers[0];
  const trainer = podOf('trainer')?.spec.containers[0];
  const contextTokens = Number(flag(engine, '--max-model-len'));

  const on = (cardBytes: number, other: Partial<Wanted> = {}) => {
    const versions = Number(flag(engine, '--max-loras'));
    const room = { cardBytes, contextTokens, sampleTokens: contextTokens, conversations };
    const wanted = { ...room, versions, rank, quantization, ...other };
    return fitOf(shape, parameters, { shape, parameters }, wanted).placements[1];
  };

  it('asks for one card for the engine and one for training, each as large as the file says', () => {
    for (const pod of [serving, training]) {
      const cards = pod?.spec.containers.map(({ resources }) => Number(resources.limits['nvidia.com/gpu'] ?? 0));
      expect(Math.max(...(cards ?? []))).toBe(1);
      const least = leastCardBytes(pod?.spec ?? {});
      expect(least).toBeGreaterThanOrEqual(card);
      expect(least).toBeLessThan(card * 1.06);
    }
  });

  it('names cards with room for as many conversations as its comment counts, and for samples as long as the context', () => {
    expect(on(card)).toMatchObject({ cards: 2, fits: 'yes', sampleTokens: contextTokens });
    expect(on(card, { conversations: conversations + 1 })?.cards).toBeGreaterThan(2);
    expect(on(smaller)?.fits).not.toBe('yes');
  });

  it('trains and serves with the numbers that were reckoned with', () => {
    expect(contextTokens).toBe(context);
    expect(flag(engine, '--max-lora-rank')).toBe(String(rank));
    expect(flag(engine, '--quantization')).toBe(quantization === 'none' ? undefined : 'bitsandbytes');
    expect(envOf(worker, 'BACKTALK_QUANTIZATION')).toBe(quantization === 'none' ? undefined : quantization);
    expect(flag(engine, '--dtype')).toBe('bfloat16');
    expect(envOf(worker, 'BACKTALK_DTYPE')).toBe('bfloat16');
    expect(envOf(worker, 'BACKTALK_DEVICE')).toBe('cuda');
    expect(envOf(trainer, 'BACKTALK_RECIPE')).toBe('small');
  });

  it('gives the hosts memory for the whole base, and the cache room for fifty versions with their optimiser', () => {
    const asked = gibibytes(worker?.resources.requests['memory']);
    expect(asked).toBeGreaterThanOrEqual(2 * parameters + 2e9);
    const version = 12 * adapterParameters(shape, rank);
    expect(Number(envOf(worker, 'BACKTALK_BLOB_CACHE_BYTES'))).toBeGreaterThanOrEqual(50 * version);
  });
});

it('a judge with a model of its own is whole beside a base in four bits', () => {
  const judge = {
    shares: '',
    engine: 'vllm',
    gpu: { count: 1 },
    resources: { limits: { memory: '32Gi' } },
    model: { name: 'big', hub: 'x/big-AWQ', revision: '0'.repeat(40) },
  };
  const argsOf = (own: object) =>
    podsOf(render({ pools: { judge: { ...judge, model: { ...judge.model, ...own } } } }, ['ci/models-8b-24gb.yaml']))
      .find(({ component }) => component.includes('engine-judge'))
      ?.spec.containers.flatMap(({ args }) => args);
  expect(argsOf({})).toContain('--served-model-name=big');
  expect(argsOf({})).not.toContain('--quantization=bitsandbytes');
  expect(argsOf({ quantization: 'nf4' })).toContain('--quantization=bitsandbytes');
});

describe('training on several cards', () => {
  it.each([1, 2, 4])('takes %i in one pod, and as many processes', (count) => {
    const values = { pools: { training: { gpu: { count } } } };
    const worker = podsOf(render(values, ['ci/models-4-8b.yaml'])).find(({ component }) =>
      component.includes('training'),
    )?.spec.containers[0];
    expect(Number(worker?.resources.limits['nvidia.com/gpu'])).toBe(count);
    expect(envOf(worker, 'BACKTALK_TRAINING_PROCESSES') ?? '1').toBe(String(count));
  });
});
