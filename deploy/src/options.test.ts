import { describe, expect, it } from 'vitest';
import { readOptions } from './options.js';

describe('options of the start', () => {
  it('every option has a default', () => {
    expect(readOptions([], '/house')).toEqual({
      verb: 'start',
      data: '/house/.backtalk',
      dataCapBytes: 10e9,
      port: 30_000,
      host: '127.0.0.1',
      yes: false,
      judge: {},
      engine: {},
    });
  });

  it('reads which engine answers and where steps compute', () => {
    const { engine, device } = readOptions(
      ['--engine', 'https://e/v1', '--engine-key-file', 'k', '--device', 'auto'],
      '/h',
    );
    expect({ engine, device }).toEqual({ engine: { engine: 'https://e/v1', keyFile: '/h/k' }, device: 'auto' });
    expect(readOptions(['--engine', 'vllm'], '/').engine.engine).toBe('vllm');
  });

  it('reads names of policies', () => {
    expect(readOptions(['--policies', 'ada, ben'], '/').policies).toEqual(['ada', 'ben']);
  });

  it('reads sizes with their unit', () => {
    expect(readOptions(['--data-cap', '1.5gb'], '/').dataCapBytes).toBe(1.5e9);
    expect(readOptions(['reset', '--yes'], '/')).toMatchObject({ verb: 'reset', yes: true });
  });

  it.each([
    [['--port', 'http'], "--port 'http' is not a port from 1024 to 65493."],
    [['--profile', 'gpu', '--compose'], "--compose 'true' is not usable without --dry-run."],
    [['--gpus', '8x80GB'], "--gpus 'true' is not usable without --profile gpu."],
    [['--port', '80'], "--port '80' is not a port from 1024 to 65493."],
    [['--port', '6000'], "--port '6000' is not usable: a part would listen on 6000, which browsers refuse to call."],
    [['--port', '10050'], "--port '10050' is not usable: a part would listen on 10080, which browsers refuse to call."],
    [['--policies', 'ada,'], "--policies 'ada,' is not one to 16 different names"],
    [['--policies', 'ada,ada'], "--policies 'ada,ada' is not one to 16 different names"],
    [['--policies', 'ada.b'], "--policies 'ada.b' is not one to 16 different names"],
    [['--policies', 'ada-v1'], "--policies 'ada-v1' is not one to 16 different names"],
    [['--policies', 'smollm2-135m-wishes'], "--policies 'smollm2-135m-wishes' is not one to 16 different names"],
    [['--judge-url', 'judge:8000'], "--judge-url 'judge:8000' is not the address of an OpenAI-compatible API"],
    [['--judge-url', 'ftp://judge'], "--judge-url 'ftp://judge' is not the address of an OpenAI-compatible API"],
    [['--judge-url', 'http://a:secret@b?k=c'], "--judge-url '…' is not the address"],
    [
      ['--engine', 'sglang'],
      "--engine 'sglang' is not the address of an OpenAI-compatible API, such as https://host/v1, or builtin, or vllm.",
    ],
    [['--engine', 'http://k@e'], "--engine '…' is not the address of an OpenAI-compatible API"],
    [['--device', 'gpu'], "--device 'gpu' is not cpu, cuda or auto."],
    [['--judge-model', ' ', '--judge-url', 'http://b'], "--judge-model ' ' is not a name."],
    [['--data-cap', 'lots'], "--data-cap 'lots' is not a size such as 500MB or 10GB."],
  ])('refuses %j in one line that names it', (args, line) => {
    expect(() => readOptions(args, '/')).toThrow(line);
  });
});
