// The names of a fact on the broker: its subject, the filter that finds it, the durable consumer that delivers it. A token
// that could change a subject's meaning is refused.
import { defineErrors } from '../errors/backtalk-error.js';
import { catalogue, type FactIds, type FactMessage, type FactName } from './catalogue.js';

export const subjectErrors = defineErrors('facts', {
  factInvalid: {
    code: 'fact_invalid',
    retry: 'never',
    message: (p: { fact: string; field: string }) =>
      `${p.fact} needs a ${p.field} made of letters, digits, "-" and "_" only.`,
  },
});

const tokenPattern = /^[A-Za-z0-9_-]{1,128}$/;

export function subjectOf<N extends FactName>(name: N, message: FactMessage<N>): string {
  const { subject, tokens } = catalogue[name];
  let path = `backtalk.${subject}`;
  for (const field of tokens) path += `.${token(name, field, Reflect.get(message, field))}`;
  return path;
}

/** The ids that a subject holds: what a fact is about, without its payload. */
export function idsOfSubject<N extends FactName>(name: N, subject: string): FactIds<N> {
  const held = subject.slice(`backtalk.${catalogue[name].subject}.`.length).split('.');
  const ids: Partial<Record<string, string>> = {};
  for (const [index, field] of catalogue[name].tokens.entries()) ids[field] = held[index] ?? '';
  return ids as FactIds<N>;
}

/** Ids left out match anything; with none at all, the filter matches every fact of that name. */
export function subjectFilter<N extends FactName>(name: N, ids?: FactIds<N>): string {
  const given = new Map<string, unknown>(Object.entries(ids ?? {}));
  if (given.size === 0) return `backtalk.${catalogue[name].subject}.>`;
  const tokens = catalogue[name].tokens.map((field) => {
    const value = given.get(field);
    return value === undefined ? '*' : token(name, field, value);
  });
  return ['backtalk', catalogue[name].subject, ...tokens].join('.');
}

/** One durable consumer for each service and fact, so that every kind of fact has an ack floor of its own. */
export function durableOf(service: string, name: FactName, suffix?: string): string {
  return suffix === undefined ? `${service}_${name}` : `${service}_${name}_${suffix}`;
}

function token(name: FactName, field: string, value: unknown): string {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !tokenPattern.test(text)) throw subjectErrors.factInvalid({ fact: name, field });
  return text;
}
