// Where a fact stands: its subject, the filter that finds it, the durable consumer that delivers it.
// Pure. A token that could break out of its place is refused.
import { catalogue, factNames, type FactIds, type FactMessage, type FactName } from './catalogue.js';
import { factErrors } from './errors.js';

const tokenPattern = /^[A-Za-z0-9_-]{1,128}$/;

export function subjectOf<N extends FactName>(name: N, message: FactMessage<N>): string {
  const { subject, tokens } = catalogue[name];
  let path = `backtalk.${subject}`;
  for (const field of tokens) path += `.${token(name, field, Reflect.get(message, field))}`;
  return path;
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

export function factNameOf(subject: string): FactName {
  const [root, noun, verb] = subject.split('.');
  const name = factNames.find((candidate) => catalogue[candidate].subject === `${noun}.${verb}`);
  if (root !== 'backtalk' || name === undefined) throw factErrors.factUnknown({ subject: subject.slice(0, 80) });
  return name;
}

/** One durable consumer for each service and fact, so that every kind of fact has an ack floor of its own. */
export function durableOf(service: string, name: FactName, suffix?: string): string {
  return suffix === undefined ? `${service}_${name}` : `${service}_${name}_${suffix}`;
}

function token(name: FactName, field: string, value: unknown): string {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !tokenPattern.test(text)) throw factErrors.factInvalid({ fact: name, field });
  return text;
}
