// `dead-letters`: facts that could not be handled, why, and giving them to their service once more.
import { deadLetters } from '@backtalk/kit';
import { withBroker } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';

export async function listDeadLetters({ connection, output }: CommandContext): Promise<void> {
  const letters = await withBroker(connection, (broker) => deadLetters(broker).list());
  for (const letter of letters) output.value(letter);
  if (letters.length === 0) {
    output.line('No dead letters: every fact was handled.');
    return;
  }
  output.table(
    ['number', 'service', 'reason', 'tries', 'since', 'fact'],
    letters.map(({ sequence, service, reason, deliveries, timeMs, fact }) => [
      String(sequence),
      service,
      reason,
      String(deliveries),
      new Date(timeMs).toISOString().slice(0, 19).replace('T', ' '),
      fact.subject.split('.').slice(1, 3).join('.'),
    ]),
  );
  output.line('');
  output.line('Try them again: npx backtalk dead-letters replay <number> | all');
}

export async function replayDeadLetters({ connection, output }: CommandContext, which: string): Promise<void> {
  await withBroker(connection, async (broker) => {
    const dead = deadLetters(broker);
    const numbers = which === 'all' ? (await dead.list()).map(({ sequence }) => sequence) : [Number(which)];
    for (const sequence of numbers) {
      if (!Number.isInteger(sequence) || sequence < 1) {
        throw cliErrors.badArgument({ name: 'number', value: which, wanted: "a dead letter's number, or 'all'" });
      }
      await dead.replay(sequence);
      output.value({ replayed: sequence });
      output.line(`${String(sequence)} is on its way to its service again.`);
    }
    if (numbers.length === 0) output.line('No dead letters to replay.');
  });
}
