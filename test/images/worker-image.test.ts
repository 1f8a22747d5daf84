// Installs torch and everything else once more and converts the model: a command of its own, `npm run test:images`.
import { freePort } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BareFolder, whyNotUnprivileged } from './bare-folder.js';
import { only, stagesOf, variables } from './dockerfile.js';

const minuteMs = 60_000;
/** Where the recipe works; the bare folder stands for it. */
const workdir = '/app';

describe('worker.Dockerfile', () => {
  const whyNot = whyNotUnprivileged();
  const [build, last] = stagesOf('worker');
  let folder: BareFolder;

  const here = (text: string) => text.replaceAll(workdir, folder.path);
  /** As the stage sets them, with what it takes from the base's own path. */
  const settings = (stage: typeof build) =>
    Object.fromEntries(
      Object.entries(variables(stage)).map(([name, value]) => [name, here(value).replace('$PATH', folder.basePath)]),
    );

  beforeAll(() => {
    folder = BareFolder.of(build);
  });

  afterAll(() => {
    folder.remove();
  });

  it.skipIf(whyNot !== undefined)(
    'builds in a bare folder as an unprivileged user, and what is left answers',
    { timeout: 30 * minuteMs },
    async () => {
      // The index of CPU builds is not asked: the pinned version is one wherever pip takes it from.
      const environment = { ...settings(build), TORCH_INDEX: '' };
      for (const { word, rest } of build.instructions) {
        if (word !== 'RUN') continue;
        const { status, output } = await folder.run(here(rest), environment, 15 * minuteMs);
        expect(status, `${rest}\n${output}`).toBe(0);
      }
      const port = String(await freePort());
      const command = (JSON.parse(only(last, 'CMD')) as string[]).map((word) => (word === '30030' ? port : word));
      const asked = `for i in $(seq 240); do curl -sf http://127.0.0.1:${port}/v1/models && break; sleep 0.5; done`;
      const serving = `${command.join(' ')} >engine.log 2>&1 & ${asked}; kill $!; wait; tail -n 5 engine.log >&2`;
      const answered = await folder.run(serving, settings(last), 5 * minuteMs);
      expect(answered.output).toContain('"smollm2-135m-instruct"');
    },
  );
});
