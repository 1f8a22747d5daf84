// Asks a person before something is destroyed; without a terminal the answer is no.
import { createInterface } from 'node:readline/promises';

export async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false;
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await prompt.question(`${question} [y/N] `)).trim());
  } catch {
    // Ctrl-C and Ctrl-D are no yes.
    return false;
  } finally {
    prompt.close();
  }
}
