// Requests as agents make them, drawn by chance: histories with tools and thoughts, arguments as each language writes them or no JSON at
// all, tools that nobody described, text in parts, what the template is told besides.
// In: chance. Out: the body of a chat request, without model and sampling.
import type { Random } from './random.js';

export interface GeneratedTalk {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly tools?: readonly unknown[];
  readonly chat_template_kwargs?: Readonly<Record<string, unknown>>;
}

const names = ['rain', 'read_file', 'exec'] as const;
const words = ['Rome', 'naïve "quotes"', '<b>&amp;</b>', 'two\nlines', '雨', '{"a": 1}', ' spaced '] as const;
const thoughtFields = ['reasoning', 'reasoning_content'] as const;
const argumentsOf: readonly [(text: string) => string, ...((text: string) => string)[]] = [
  (text) => JSON.stringify({ place: text, days: [1, 2.5], on: true, deep: { none: null } }),
  // As Python writes it.
  (text) => `{"place": ${JSON.stringify(text)}, "days": [1, 2.5]}`,
  (text) => `{"place":${JSON.stringify(text)},"big":12345678901234567890,"small":1.0}`,
  () => '',
  () => '{}',
  (text) => `{"place": ${text}`,
];
const toolOf: readonly [(name: string) => object, ...((name: string) => object)[]] = [
  (name) => ({ name, description: 'What it does.', parameters: { type: 'object', properties: { place: {} } } }),
  (name) => ({ name, parameters: { type: 'object', properties: {} }, strict: true }),
  (name) => ({ name, description: '' }),
  (name) => ({ name }),
];

export function generatedTalk(random: Random): GeneratedTalk {
  const messages = random.below(3) === 0 ? [] : [{ role: 'system', content: contentOf(random) }];
  const rounds = 1 + random.below(3);
  const history = Array.from({ length: rounds }, (_, at) => roundOf(random, at === rounds - 1)).flat();
  const tools = names.slice(0, random.below(names.length + 1)).map((name) => ({
    type: 'function',
    function: random.pick(toolOf)(name),
  }));
  const thinking = random.pick([undefined, undefined, false, true]);
  return {
    messages: [...messages, ...history],
    ...(tools.length === 0 ? {} : { tools }),
    ...(thinking === undefined ? {} : { chat_template_kwargs: { enable_thinking: thinking } }),
  };
}

function contentOf(random: Random): unknown {
  const said = `${random.pick(words)} ${String(random.below(1_000))}`;
  return random.pick<unknown>([
    said,
    [{ type: 'text', text: said }],
    [
      { type: 'text', text: said },
      { type: 'text', text: 'and' },
    ],
  ]);
}

/** What a person asks and, but for the last time, the answer; in between, calls and what tools said. */
function roundOf(random: Random, isLast: boolean): Readonly<Record<string, unknown>>[] {
  const round: Record<string, unknown>[] = [{ role: 'user', content: contentOf(random) }];
  for (let step = random.below(3); step > 0; step -= 1) {
    const calls = Array.from({ length: 1 + random.below(2) }, () => ({
      id: `call${String(100_000 + random.below(899_999))}`,
      type: 'function',
      function: { name: random.pick(names), arguments: random.pick(argumentsOf)(random.pick(words)) },
    }));
    const thoughts = random.below(2) === 0 ? {} : { [random.pick(thoughtFields)]: random.pick(words) };
    round.push({ role: 'assistant', content: random.pick([null, '', 'Let me see.']), ...thoughts, tool_calls: calls });
    for (const { id } of calls) round.push({ role: 'tool', tool_call_id: id, content: contentOf(random) });
  }
  if (!isLast) round.push({ role: 'assistant', content: contentOf(random) });
  return round;
}
