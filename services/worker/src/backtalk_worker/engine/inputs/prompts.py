"""Turns messages and texts into ids that leave room for an answer; what cannot fit is refused before it costs time."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

from backtalk_worker.engine import errors
from backtalk_worker.engine.domain.text import TokenBytes, byte_of_character
from backtalk_worker.engine.inputs.requests import ChatRequest, CompletionRequest, malformed
from backtalk_worker.model.load import LoadedModel

LONG_TEXT_CHARACTERS = 20_000
"""Longer texts are tokenised on another thread, so that they hold up no other request."""


def token_bytes(model: LoadedModel) -> TokenBytes:
    """The bytes of every id of a byte-level vocabulary; any other kind is refused at the start."""
    vocabulary, added = model.tokenizer.get_vocab(), dict(model.tokenizer.added_tokens_decoder)
    table = [b""] * (1 + max(vocabulary.values(), default=-1))
    bytes_of = byte_of_character()
    for token, index in vocabulary.items():
        # Added tokens are written as they are.
        own = bytes(bytes_of.get(character, ord("?")) for character in token)
        table[index] = str(added[index].content).encode() if index in added else own
    sample = "Häßlich 你好 🎉 ok"
    if b"".join(table[i] for i in model.encode(sample)).decode(errors="replace") != sample:
        raise OSError("this engine serves models with a byte-level BPE tokenizer only")
    return TokenBytes(table, frozenset(index for index, token in added.items() if token.special))


class PromptReader:
    """Prompts for one model."""

    def __init__(self, model: LoadedModel, tokens: TokenBytes, length_max: int) -> None:
        self.model = model
        self.tokens = tokens
        self.length_max = length_max
        self._token_bytes_max = max(len(data) for data in tokens.table)

    async def chat(self, request: ChatRequest) -> list[int]:
        """Messages (and tools, where the template knows them) → prompt ids."""
        tools = None if request.tool_choice == "none" else request.tools
        return self._fits(
            await self.render(request.messages, tools, request.add_generation_prompt, request.chat_template_kwargs)
        )

    async def completions(self, request: CompletionRequest) -> list[list[int]]:
        """One prompt or several, as text or ids → prompts as ids."""
        prompt = request.prompt
        if prompt is None or prompt == []:
            raise errors.BadRequestError("You must pass at least one prompt")
        if isinstance(prompt, str):
            return [self._fits(await self.encode(prompt, request.add_special_tokens))]
        if isinstance(prompt[0], str):
            texts = cast(list[str], prompt)
            return [self._fits(await self.encode(text, request.add_special_tokens)) for text in texts]
        given = [cast(list[int], prompt)] if isinstance(prompt[0], int) else cast(list[list[int]], prompt)
        return [self._fits(self._known(ids)) for ids in given]

    async def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        add_generation_prompt: bool,
        arguments: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Messages → ids by the model's template."""
        if not messages:
            raise errors.BadRequestError(
                "Cannot apply chat template to an empty conversation. Provide at least one message."
            )
        plain = [_plain_message(message) for message in messages]
        size = sum(len(message["content"]) for message in plain)
        self._refuse_hopeless(size)

        def render() -> list[int]:
            return self.model.render_chat(
                plain, tools=tools, add_generation_prompt=add_generation_prompt, template_arguments=arguments
            )

        try:
            return await asyncio.to_thread(render) if size > LONG_TEXT_CHARACTERS else render()
        except Exception as error:
            raise errors.BadRequestError(
                "The model's chat template cannot render these messages.", param="messages"
            ) from error

    async def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        """Text → ids."""
        self._refuse_hopeless(len(text))
        if len(text) > LONG_TEXT_CHARACTERS:
            return await asyncio.to_thread(self.model.encode, text, add_special_tokens=add_special_tokens)
        return self.model.encode(text, add_special_tokens=add_special_tokens)

    def decode(self, ids: Sequence[int]) -> str:
        """Ids → text with special tokens."""
        return self.model.decode(self._known(ids), skip_special_tokens=False)

    def token_strings(self, ids: Sequence[int]) -> list[str]:
        """Ids → the vocabulary's own spellings."""
        return [str(token) for token in self.model.tokenizer.convert_ids_to_tokens(list(ids))]

    def _known(self, ids: Sequence[int]) -> list[int]:
        for token in ids:
            if token >= self.model.vocabulary_size:
                raise errors.BadRequestError(f"Token id {token} is out of vocabulary")
        return list(ids)

    def _fits(self, ids: list[int]) -> list[int]:
        if not ids:
            raise errors.BadRequestError("You must pass at least one prompt")
        if len(ids) >= self.length_max:
            raise errors.ContextOverflowError(self.length_max, len(ids))
        return ids

    def _refuse_hopeless(self, characters: int) -> None:
        """Text that overflows the context even if every token were the longest there is need not be tokenised."""
        least = characters // self._token_bytes_max
        if least > self.length_max:
            raise errors.ContextOverflowError(self.length_max, least)


def _plain_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message whose content is text: parts are joined by line breaks, no content is empty text."""
    content = message.get("content")
    if not isinstance(message.get("role"), str):
        raise malformed("{'type': 'missing', 'loc': 'body.messages.role'}", "body.messages")
    if content is None or isinstance(content, str):
        return {**message, "content": content or ""}
    if not isinstance(content, list):
        raise malformed("{'loc': 'body.messages.content'}", "body.messages")
    return {**message, "content": "\n".join(_part_text(part) for part in cast(list[object], content))}


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        fields = cast(dict[str, object], part)
        if fields.get("type", "text") in ("text", "input_text", "output_text") and isinstance(fields.get("text"), str):
            return str(fields["text"])
    raise errors.BadRequestError("Only text parts are supported by this model.", param="messages")
