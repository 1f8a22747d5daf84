// Labelled next states of anybody's: JSON lines with `context` (messages), `answer`, `next` (a message), `label`, `hint` or null and,
// where there are, `kind` and `clean` (`next` without the injected text). In: a file's text. Out: turns as the judge meets them. A line
// that says anything else is refused with its number.
import { readMaterial, type Material, type Verdict } from '@backtalk/judge';
import { isObservation, personWords } from '@backtalk/kit';
import { Provenance, TurnContinued, type NextStateMessage } from '@backtalk/proto/facts';
import { z } from 'zod';
import { judgeSetErrors } from './errors.js';

const part = z.looseObject({ type: z.string(), text: z.string().optional() });
const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: z.union([z.string(), z.array(part)]).nullish(),
});
const labels = { satisfied: 1, neutral: 0, correction: -1 } as const;
const label = z.union([
  z.enum(['satisfied', 'neutral', 'correction']).transform((name) => labels[name]),
  z.union([z.literal(-1), z.literal(0), z.literal(1)]),
]);
const line = z.object({
  context: z.array(message),
  answer: z.string(),
  next: message,
  label,
  hint: z.string().nullish(),
  kind: z.string().optional(),
  clean: message.optional(),
});

export interface LabelledTurn {
  readonly number: number;
  /** Nothing where the next state says nothing. */
  readonly material: Material | undefined;
  readonly clean: Material | undefined;
  readonly label: Verdict;
  readonly kind: string;
  /** Empty where none is expected. */
  readonly hint: string;
}

export function readLabelledTurns(text: string): LabelledTurn[] {
  const lines = text.split('\n').map((json, at) => ({ json, number: at + 1 }));
  const turns = lines.filter(({ json }) => json.trim() !== '').map(({ json, number }) => turnOf(json, number));
  if (turns.length === 0) throw judgeSetErrors.emptySet({});
  return turns;
}

function turnOf(json: string, number: number): LabelledTurn {
  const { context, answer, next, label: wanted, hint, kind = '', clean } = parsed(json, number);
  const materialOf = (said: z.infer<typeof message>) =>
    readMaterial(
      context,
      { text: answer, reasoning: '', toolCalls: new Uint8Array(), weightsVersion: '', finishReason: 'stop' },
      TurnContinued.fromPartial({ turn: `line-${String(number)}`, nextState: nextStateOf(said) }),
    );
  return {
    number,
    material: materialOf(next),
    clean: clean === undefined ? undefined : materialOf(clean),
    label: wanted,
    kind,
    hint: hint ?? '',
  };
}

function parsed(json: string, number: number): z.infer<typeof line> {
  try {
    return line.parse(JSON.parse(json));
  } catch (error) {
    const why = error instanceof z.ZodError ? reasonOf(error) : 'it is not JSON';
    throw judgeSetErrors.badLine({ number, why }, error);
  }
}

function reasonOf({ issues: [first] }: z.ZodError): string {
  return first === undefined ? 'it has another shape' : `${first.path.join('.')}: ${first.message}`;
}

function nextStateOf({ role, content }: z.infer<typeof message>): Pick<NextStateMessage, 'provenance' | 'text'>[] {
  const texts = typeof content === 'string' ? [content] : (content ?? []).flatMap(({ text = '' }) => [text]);
  return texts.filter((text) => text !== '').map((text) => ({ provenance: provenanceOf(role, text), text }));
}

function provenanceOf(role: string, text: string): Provenance {
  if (role === 'tool' || role === 'function') return Provenance.PROVENANCE_TOOL;
  if (role !== 'user' || personWords(text) === '') return Provenance.PROVENANCE_CLIENT;
  return isObservation(text) ? Provenance.PROVENANCE_ENVIRONMENT : Provenance.PROVENANCE_USER;
}
