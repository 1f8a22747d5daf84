// `receipt`: whether what `forget` gave is as it was signed, and what it says.
import { readFileSync } from 'node:fs';
import { cliErrors } from '../errors.js';
import type { Output } from '../output.js';
import { fingerprint, isGenuine, readReceipt, receiptLines } from '../receipt.js';

export function checkReceipt(output: Output, file: string): void {
  const signed = readReceipt(textIn(file));
  if (signed === undefined) throw cliErrors.badArgument({ name: 'file', value: file, wanted: 'a receipt of `forget`' });
  if (!isGenuine(signed)) throw cliErrors.receiptForged({ file });
  const { receipt, publicKey } = signed;
  const key = fingerprint(publicKey);
  output.value({ genuine: true, key, receipt });
  output.line(`Unchanged since it was signed with key ${key}.`);
  for (const line of receiptLines(receipt)) output.line(line);
}

function textIn(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw cliErrors.badArgument({ name: 'file', value: file, wanted: 'a file that can be read' }, error);
  }
}
