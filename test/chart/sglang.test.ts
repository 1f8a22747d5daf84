// How the chart starts an SGLang, against what the source of the release that it runs asks for (services/lib/dialects/README.md).
import { expect, it } from 'vitest';
import { render } from './helm.js';
import { podsOf } from './pods.js';

function engineOf(values: Record<string, unknown>) {
  const pod = podsOf(render({ pools: { serving: { engine: 'sglang', ...values } } }, ['ci/models-4-8b.yaml']));
  const containers = pod.flatMap(({ spec }) => spec.containers);
  const found = containers.find(({ name }) => name === 'engine');
  if (found === undefined) throw new RangeError('no pod has an engine');
  return found;
}

it('adapters have places beside the base, calls are read, and no key is logged', () => {
  const { args } = engineOf({ adapters: { loaded: 3, kept: 6 } });
  expect(args).toContain('--max-loras-per-batch=4');
  expect(args).toContain('--max-loaded-loras=6');
  expect(args).toContain('--tool-call-parser=auto');
  expect(args).toContain('--log-level=warning');
});

it('the operator’s own words stand behind them, and so hold', () => {
  const { args } = engineOf({ extraArgs: ['--tool-call-parser=qwen'] });
  expect(args.indexOf('--tool-call-parser=qwen')).toBeGreaterThan(args.indexOf('--tool-call-parser=auto'));
});

it('a look at its health asks for no token, and may take longer than the second that Kubernetes gives it', () => {
  const { env, startupProbe } = engineOf({});
  expect(env).toContainEqual({ name: 'SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION', value: 'false' });
  expect(startupProbe).toMatchObject({ timeoutSeconds: 5 });
});
