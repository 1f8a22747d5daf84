// Reads what a model wrote as the JSON object that it was asked for. In: the body of a chat completion, of which nothing is
// trusted. Out: the object, or in one word why it cannot be used; what the model wrote goes no further.
import { isJsonObject } from '@backtalk/kit';
import { z } from 'zod';

export const unusable = ['empty', 'refusal', 'overlong', 'malformed'] as const;
export type Unusable = (typeof unusable)[number];

export type FormReply<T> = { readonly value: T } | { readonly unusable: Unusable };

/** Of a whole reply, thoughts aside; longer ones are not read. */
const replyCharactersMax = 8_000;
const thoughtsEnd = '</think>';

const completion = z.object({
  choices: z.tuple(
    [
      z.object({
        message: z.object({ content: z.string().nullish(), refusal: z.string().nullish() }),
        finish_reason: z.string().nullish(),
      }),
    ],
    z.unknown(),
  ),
});

export function readForm<T>(body: unknown, form: z.ZodType<T>): FormReply<T> {
  const read = completion.safeParse(body);
  if (!read.success) return { unusable: 'malformed' };
  const [{ message, finish_reason: ended }] = read.data.choices;
  if ((message.refusal ?? '') !== '' || ended === 'content_filter') return { unusable: 'refusal' };
  const text = withoutThoughts(message.content ?? '');
  if (ended === 'length' || text.length > replyCharactersMax) return { unusable: 'overlong' };
  return text === '' ? { unusable: 'empty' } : formIn(text, form);
}

/** A model that thinks aloud ends its thoughts with a mark, which some templates begin for it. */
function withoutThoughts(content: string): string {
  const end = content.lastIndexOf(thoughtsEnd);
  return (end === -1 ? content : content.slice(end + thoughtsEnd.length)).trim();
}

function formIn<T>(text: string, form: z.ZodType<T>): FormReply<T> {
  const object = objectIn(text);
  if (object === undefined) return { unusable: isRefusal(text) ? 'refusal' : 'malformed' };
  const { data, error } = form.safeParse(object);
  if (error === undefined) return { value: data };
  const isLong = error.issues.every((issue) => issue.code === 'too_big' && issue.origin === 'string');
  return { unusable: isLong ? 'overlong' : 'malformed' };
}

/** From the first brace to the last: models put a fence or a sentence around what they were asked for. */
function objectIn(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRefusal(text: string): boolean {
  return /^["'*\s]*(?:i['’]?m (?:very )?sorry|sorry|i (?:can['’]?t|cannot|won['’]?t|am unable)|as an ai)\b/i.test(text);
}
