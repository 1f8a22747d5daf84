// Installs every package twice and compiles everything: a command of its own, `npm run test:images`.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BareFolder, whyNotUnprivileged } from './bare-folder.js';
import { only, stagesOf, variables } from './dockerfile.js';

const minuteMs = 60_000;
const services = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader'];

describe('services.Dockerfile', () => {
  const whyNot = whyNotUnprivileged();
  const [build, last] = stagesOf('services');
  let folder: BareFolder;

  beforeAll(() => {
    folder = BareFolder.of(build);
  });

  afterAll(() => {
    folder.remove();
  });

  it.skipIf(whyNot !== undefined)(
    'builds in a bare folder as an unprivileged user, and what is left starts',
    { timeout: 30 * minuteMs },
    async () => {
      for (const { word, rest } of build.instructions) {
        if (word !== 'RUN') continue;
        const { status, output } = await folder.run(rest, variables(build), 10 * minuteMs);
        expect(status, `${rest}\n${output}`).toBe(0);
      }
      const command = JSON.parse(only(last, 'CMD')) as string[];
      const help = await folder.run(command.join(' '), variables(last), minuteMs);
      expect(help).toMatchObject({ status: 0 });
      expect(help.output).toContain('streams');
      for (const name of services) {
        const started = await folder.run(`node services/${name}/dist/main.js`, variables(last), minuteMs);
        expect(started.status, name).toBe(2);
        expect(started.output, name).toContain('BACKTALK_HEALTH_ADDRESS is not set');
      }
      const dev = ['typescript', 'vitest', 'eslint', 'turbo'].filter((name) =>
        readdirSync(join(folder.path, 'node_modules')).includes(name),
      );
      expect(dev).toEqual([]);
    },
  );
});
