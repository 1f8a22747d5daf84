// The seed of a test that draws by chance: printed, so that BACKTALK_TEST_SEED plays the same run again.
import { readConfig, setting } from '@backtalk/kit';

const settings = {
  seed: setting.integer('BACKTALK_TEST_SEED', {
    description: 'Seed of the clients of tests that draw by chance; 0 draws one.',
    default: 0,
    min: 0,
  }),
};

export function printedSeed(): number {
  const given = readConfig(settings).seed;
  const seed = given === 0 ? 1 + Math.floor(Math.random() * 1_000_000) : given;
  process.stdout.write(`BACKTALK_TEST_SEED=${String(seed)}\n`);
  return seed;
}
