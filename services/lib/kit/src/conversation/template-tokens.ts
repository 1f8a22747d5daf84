// Tokens with which chat templates part the turns of a conversation. A text that quotes one would end its own turn in the prompt of
// a teacher, and begin one in another's name. In: text. Out: the first such token. Pure.

const template =
  /<[|\uFF5C][^|\uFF5C<>\n]{1,60}[|\uFF5C]>|<\/?s>|<<\/?SYS>>|\[\/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\]|<\/?(?:bos|eos|pad|unk|start_of_turn|end_of_turn|tool_call|tool_response|think)>/iu;

/** Nothing where it quotes none. */
export function templateTokenIn(text: string): string | undefined {
  return template.exec(text)?.[0];
}
