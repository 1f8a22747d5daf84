// Learns to tell a reply that only judges ("wrong again") from one that says what is wanted. In: labelled replies of people, and
// labelled turns whose correction says something. Out: weights, in the judge's form. The same each time.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { wordsAlone, featuresOf, type WordWeights } from '@backtalk/judge';
import { repositoryRoot } from '@backtalk/kit/testing';
import { z } from 'zod';
import { fitRole, type Labelled } from './fit-words.js';
import type { Sample } from './sources.js';

const bareReply = z.object({ text: z.string(), says: z.boolean(), lang: z.string() });
export type BareReply = z.infer<typeof bareReply>;

export function readBareReplies(file = join(repositoryRoot(), 'test/judge/labelled/bare.jsonl')): BareReply[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => bareReply.parse(JSON.parse(line)));
}

export function fitBare(samples: readonly Sample[]): WordWeights {
  const replies = readBareReplies();
  const saying = samples.flatMap(({ material, hint }) =>
    material === undefined || hint === '' || material.next.role !== 'user'
      ? []
      : [labelled(material.next.userText, true, 'turns')],
  );
  return fitRole([...replies.map(({ text, says }) => labelled(text, says, 'replies')), ...saying]);
}

function labelled(text: string, says: boolean, source: string): Labelled {
  return { features: featuresOf(wordsAlone(text)), label: says ? -1 : 1, source };
}
