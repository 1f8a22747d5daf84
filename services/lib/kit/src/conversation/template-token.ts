// Whether a text holds a token of a chat template. Such a token ends a message where a template is rendered, so what people give as a lesson
// must not hold one. In: any text. Out: the first token that is found. It knows the shapes in use, not one model's vocabulary.

const shapes =
  /<\|[^|<>\s]{1,64}\|>|<\uFF5C[^<>]{1,64}\uFF5C>|<\/?s>|\[\/?INST\]|<<\/?SYS>>|<(?:start|end)_of_turn>|<(?:bos|eos|pad|unk|think)>|<\/think>/iu;

export function templateTokenIn(text: string): string | undefined {
  return shapes.exec(text)?.[0];
}
