"""Turns messages and texts into ids that leave room for an answer; what cannot fit is refused before it costs time.

Template and tokenizer run on threads of their own, with a bound on what they get and on how long they take. What is
read before that is bounded by itself: a tool call's arguments are JSON in a string, whose parts nothing has counted.
"""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

from backtalk_worker.engine import errors
from backtalk_worker.engine.domain.text import TokenBytes, bytes_of_fallback, bytes_of_level
from backtalk_worker.engine.inputs.requests import ChatRequest, CompletionRequest, are_over, malformed
from backtalk_worker.model.answers import thoughts
from backtalk_worker.model.answers.reading import AnswerReader, answer_format
from backtalk_worker.model.load import LoadedModel

MESSAGES_MAX = 2_000
TOOLS_MAX = 1_000
TEMPLATE_ARGUMENTS_MAX = 16
TEMPLATE_TEXT_MAX = 1_000
"""Characters of one value that a caller gives to the template."""
RENDERED_CHARACTERS_MAX = 4_000_000
"""Of all that a template may read: messages and tools, as JSON."""
ARGUMENTS_CHARACTERS_MAX = 500_000
"""Of all arguments of tool calls in one request, which are JSON in strings."""
ARGUMENTS_PARTS_MAX = 20_000
"""Objects, lists and commas between values in them, in all: read and written again in 10 ms."""
PROMPTS_MAX = 1_024
RENDER_SECONDS_MAX = 10.0
RENDER_THREADS = 2

PROMPT_END_IDS = 16
"""Ids at the end of a prompt that may open thoughts."""

T = TypeVar("T")


def token_bytes(model: LoadedModel) -> TokenBytes:
    """The bytes of every id of a BPE vocabulary, byte-level or with bytes to fall back to; others are refused."""
    vocabulary, added = model.tokenizer.get_vocab(), dict(model.tokenizer.added_tokens_decoder)
    table = [b""] * (1 + max(vocabulary.values(), default=-1))
    bytes_of = bytes_of_fallback if "<0x0A>" in vocabulary else bytes_of_level
    for token, index in vocabulary.items():
        # Added tokens are written as they are.
        table[index] = str(added[index].content).encode() if index in added else bytes_of(token)
    sample = "Häßlich 你好 🎉 ok"
    read = b"".join(table[i] for i in model.encode(sample)).decode(errors="replace")
    # Some vocabularies with a fallback put a space before the first word.
    if read.removeprefix(" ") != sample:
        raise OSError("this engine serves models with a BPE tokenizer that knows all bytes only")
    return TokenBytes(table, frozenset(index for index, token in added.items() if token.special))


class PromptReader:
    """Prompts for one model."""

    def __init__(self, model: LoadedModel, tokens: TokenBytes, length_max: int) -> None:
        self.model = model
        self.tokens = tokens
        self.length_max = length_max
        self._token_bytes_max = max(len(data) for data in tokens.table)
        # A caller's value by one of these names would change how the template is applied, not what it says.
        reserved = inspect.signature(model.tokenizer.apply_chat_template).parameters
        self._reserved = frozenset([*reserved, *model.tokenizer.special_tokens_map, "messages"])
        self._threads = ThreadPoolExecutor(RENDER_THREADS, "prompts")
        self.format = answer_format(model.tokenizer)
        self.kept_ids = frozenset(i for i in tokens.special if tokens.text(i) in self.format.markers)
        """Special ids that readers of answers have to see."""

    async def chat(self, request: ChatRequest) -> list[int]:
        """Messages (and tools, where the template knows them) → prompt ids.

        As with vLLM, the template is shown tools that may not be called (`tool_choice: "none"`), too.
        """
        shown = (request.messages, request.tools, request.add_generation_prompt, request.chat_template_kwargs)
        return self._fits(await self.render(*shown))

    def readers(self, request: ChatRequest, prompt: Sequence[int]) -> list[AnswerReader] | None:
        """One for each answer; None where answers stay text: no tools to call, or a format that is not known."""
        if not request.tools or request.tool_choice == "none":
            return None
        end = b"".join(self.tokens.table[i] for i in prompt[-PROMPT_END_IDS:]).decode(errors="ignore")
        opened, only_one = end.rstrip().endswith(thoughts.OPENING), request.parallel_tool_calls is False
        made = [self.format.reader(opened, only_one) for _ in range(request.n)]
        return [reader for reader in made if reader is not None] or None

    async def completions(self, request: CompletionRequest) -> list[list[int]]:
        """One prompt or several, as text or ids → prompts as ids."""
        prompt = request.prompt
        if prompt is None or prompt == []:
            raise errors.BadRequestError("You must pass at least one prompt")
        if len(prompt) > PROMPTS_MAX and not isinstance(prompt, str) and not isinstance(prompt[0], int):
            raise errors.BadRequestError(f"At most {PROMPTS_MAX} prompts are allowed.", param="prompt")
        if isinstance(prompt, str):
            return [self._fits(await self.encode(prompt, request.add_special_tokens))]
        if isinstance(prompt[0], str):
            texts = cast(list[str], prompt)
            return [self._fits(await self.encode(text, request.add_special_tokens)) for text in texts]
        given = [cast(list[int], prompt)] if isinstance(prompt[0], int) else cast(list[list[int]], prompt)
        return [self._fits(list(ids)) for ids in given]

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
        if len(messages) > MESSAGES_MAX:
            raise errors.BadRequestError(f"At most {MESSAGES_MAX} messages are allowed.", param="messages")
        if tools is not None and len(tools) > TOOLS_MAX:
            raise errors.BadRequestError(f"At most {TOOLS_MAX} tools are allowed.", param="tools")
        self._check_arguments(arguments or {})
        plain = plain_messages(messages)
        self._refuse_hopeless(sum(len(message["content"]) for message in plain))

        def render() -> list[int]:
            if len(json.dumps([plain, tools], ensure_ascii=False)) > RENDERED_CHARACTERS_MAX:
                words = f"Messages and tools may have {RENDERED_CHARACTERS_MAX} characters as JSON."
                raise errors.BadRequestError(words, param="messages")
            return self.model.render_chat(
                plain, tools=tools, add_generation_prompt=add_generation_prompt, template_arguments=arguments
            )

        try:
            return await self._apart(render)
        except errors.EngineError:
            raise
        except Exception as error:
            raise errors.BadRequestError(
                "The model's chat template cannot render these messages.", param="messages"
            ) from error

    async def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        """Text → ids."""
        self._refuse_hopeless(len(text))
        return await self._apart(lambda: self.model.encode(text, add_special_tokens=add_special_tokens))

    async def _apart(self, work: Callable[[], T]) -> T:
        """On another thread. Work that takes too long is refused; it ends by itself, because its input is bounded."""
        running = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.wait_for(running, RENDER_SECONDS_MAX)
        except TimeoutError as error:
            raise errors.RenderTooLongError(RENDER_SECONDS_MAX) from error

    def _check_arguments(self, arguments: Mapping[str, Any]) -> None:
        if len(arguments) > TEMPLATE_ARGUMENTS_MAX:
            words = f"At most {TEMPLATE_ARGUMENTS_MAX} values are allowed. (parameter=chat_template_kwargs)"
            raise errors.BadRequestError(words, param="chat_template_kwargs")
        for name, value in arguments.items():
            if name in self._reserved or not name.isidentifier() or len(name) > 100:
                raise errors.TemplateArgumentError(name[:100], "is not a value that a caller may give")
            if not isinstance(value, str | int | float | None):
                raise errors.TemplateArgumentError(name, "must be a text, a number, true, false or null")
            if isinstance(value, str) and len(value) > TEMPLATE_TEXT_MAX:
                raise errors.TemplateArgumentError(name, f"is longer than {TEMPLATE_TEXT_MAX} characters")

    async def decode(self, ids: Sequence[int]) -> str:
        """Ids → text with special tokens."""
        known = self._known(ids)
        return await self._apart(lambda: self.model.decode(known, skip_special_tokens=False))

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
        # Some tokenizers know tokens, such as those of images, for which their model has no embedding.
        return self._known(ids)

    def _refuse_hopeless(self, characters: int) -> None:
        """Text that overflows the context even if every token were the longest there is need not be tokenised."""
        least = characters // self._token_bytes_max
        if least > self.length_max:
            raise errors.ContextOverflowError(self.length_max, least)


def plain_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """As templates expect them."""
    _refuse_costly_arguments(messages)
    return [_plain_message(message) for message in messages]


def _plain_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as templates expect it, and as vLLM gives it to them: content as text (parts are joined by line breaks,
    no content is empty text), thoughts by both their names, and a tool call's arguments as the object that their JSON
    says."""
    content = message.get("content")
    if not isinstance(message.get("role"), str):
        raise malformed("{'type': 'missing', 'loc': 'body.messages.role'}", "body.messages")
    plain = {**message, "content": _text_of(content)}
    thought = message.get("reasoning") or message.get("reasoning_content")
    if thought:
        plain |= {"reasoning": thought, "reasoning_content": thought}
    if isinstance(message.get("tool_calls"), list):
        plain["tool_calls"] = [_plain_call(call) for call in message["tool_calls"]]
    return plain


def _text_of(content: object) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise malformed("{'loc': 'body.messages.content'}", "body.messages")
    return "\n".join(_part_text(part) for part in cast(list[object], content))


def _refuse_costly_arguments(messages: Sequence[Mapping[str, Any]]) -> None:
    """Before any of them is read."""
    given = [text for message in messages for text in _argument_texts(message)]
    if sum(map(len, given)) > ARGUMENTS_CHARACTERS_MAX:
        words = f"Arguments of tool calls may have {ARGUMENTS_CHARACTERS_MAX} characters."
        raise errors.BadRequestError(words, param="messages")
    if are_over([text.encode(errors="replace") for text in given], ARGUMENTS_PARTS_MAX, b"{", b"[", b","):
        words = f"Arguments of tool calls may hold {ARGUMENTS_PARTS_MAX} objects, lists and values."
        raise errors.BadRequestError(words, param="messages")


def _argument_texts(message: Mapping[str, Any]) -> list[str]:
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in _objects(calls)]
    return [text for function in _objects(functions) if isinstance(text := function.get("arguments"), str)]


def _objects(values: object) -> list[dict[str, Any]]:
    listed = cast(list[object], values) if isinstance(values, list) else []
    return [cast(dict[str, Any], value) for value in listed if isinstance(value, dict)]


def _plain_call(call: object) -> object:
    if not isinstance(call, dict) or not isinstance(call.get("function"), dict):
        return call
    function = cast(dict[str, Any], call["function"])
    return {**call, "function": {**function, "arguments": _read_arguments(function.get("arguments"))}}


def _read_arguments(arguments: object) -> object:
    """What is no JSON, or is nested too deep for it, stays the text that the model wrote."""
    if arguments is None or arguments == "":
        return {}
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        fields = cast(dict[str, object], part)
        if fields.get("type", "text") in ("text", "input_text", "output_text") and isinstance(fields.get("text"), str):
            return str(fields["text"])
    raise errors.BadRequestError("Only text parts are supported by this model.", param="messages")
