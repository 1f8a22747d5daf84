"""Readers of answers: what they find does not depend on how an answer is cut, nothing is lost, and time is linear."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from backtalk_worker.model.answers.hermes import HermesCalls
from backtalk_worker.model.answers.llama import LlamaCalls
from backtalk_worker.model.answers.mistral import MistralCalls
from backtalk_worker.model.answers.reading import answer_format
from backtalk_worker.model.answers.thoughts import Thought, Thoughts
from backtalk_worker.model.answers.values import Call
from tests.model.made import MADE, make_model

READERS: dict[str, Callable[[], Any]] = {
    "hermes": HermesCalls,
    "mistral": MistralCalls,
    "llama": LlamaCalls,
    "thoughts": lambda: Thoughts(False),
    "opened thoughts": lambda: Thoughts(True),
}
WORDS = [
    *("<tool_call>", "</tool_call>", "<tool_call>", "[TOOL_CALLS]", "[ARGS]", "<|python_tag|>", "<think>", "</think>"),
    *('{"name": "a", "arguments": {}}', '{"name": "a", "parameters": {"b": "</tool_call>"}}', '"name": "a"', "name"),
    *("{", "}", "[", "]", '"', "\\", "\n", " ", ",", ";", "<", "</", "a", "<thi", "é"),
]


def read(reader: Any, pieces: list[str]) -> list[Any]:
    """What is found, with neighbours of a kind put together."""
    found: list[Any] = []
    for piece in [*(each for text in pieces for each in reader.add(text)), *reader.end()]:
        if isinstance(piece, str) and found and isinstance(found[-1], str):
            found[-1] += piece
        elif isinstance(piece, Thought) and found and isinstance(found[-1], Thought):
            found[-1] = Thought(found[-1].text + piece.text)
        else:
            found.append(piece)
    return found


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("hermes", '<tool_call>{"name":"a","arguments":{"b":[1]}}</tool_call>', [Call("a", '{"b": [1]}')]),
        ("hermes", 'Sure.\n<tool_call>{"name":"a","arguments":{}}\n', ["Sure.", Call("a", "{}")]),
        (
            "hermes",
            '\n\n<tool_call>{"name":"a","arguments":{"b":"</tool_call>"}}</tool_call> so',
            [Call("a", '{"b": "</tool_call>"}'), " so"],
        ),
        ("hermes", "A <tool_call> is a tag.\n", ["A <tool_call> is a tag.\n"]),
        (
            "hermes",
            '<tool_call>{"name":"a"}</tool_call>\n<tool_call>{"name":"b","arguments":{}}</tool_call>',
            ['<tool_call>{"name":"a"}</tool_call>', Call("b", "{}")],
        ),
        (
            "mistral",
            '[TOOL_CALLS] [{"name":"a","arguments":{}}, {"name":"b","arguments":{"c":1}}]',
            [Call("a", "{}"), Call("b", '{"c": 1}')],
        ),
        (
            "mistral",
            'So[TOOL_CALLS]get_a[ARGS]{"b":"é"}[TOOL_CALLS]c{}',
            ["So", Call("get_a", '{"b": "é"}'), Call("c", "{}")],
        ),
        ("mistral", "[TOOL_CALLS] not so {} [TOOL_CALLS]a[ARGS]{}", ["[TOOL_CALLS] not so {} ", Call("a", "{}")]),
        ("mistral", '[TOOL_CALLS] [{"name":"a","arguments":{}}', ['[TOOL_CALLS] [{"name":"a","arguments":{}}']),
        ("llama", '{"name":"a","parameters":{"b":1}}', [Call("a", '{"b": 1}')]),
        (
            "llama",
            '\n<|python_tag|>{"name":"a","parameters":{}}; {"name":"b","arguments":{}}',
            [Call("a", "{}"), Call("b", "{}")],
        ),
        ("llama", '{"name":"Ada","age":36}', ['{"name":"Ada","age":36}']),
        ("llama", 'As JSON: {"name":"a","parameters":{}}', ['As JSON: {"name":"a","parameters":{}}']),
        ("thoughts", "<think>\nWell,\n\nso.\n</think>\n\nYes.\n", [Thought("Well,\n\nso."), "Yes.\n"]),
        ("thoughts", "<think>\n\n</think>\n\nYes.", ["Yes."]),
        ("thoughts", "No <think>tags</think>", ["No <think>tags</think>"]),
        ("opened thoughts", "Well.</think>Yes.</think>", [Thought("Well."), "Yes.</think>"]),
    ],
)
def test_calls_and_thoughts_are_found_however_an_answer_is_cut(name: str, text: str, found: list[Any]):
    for size in (1, 2, 3, 7, len(text)):
        assert read(READERS[name](), [text[at : at + size] for at in range(0, len(text), size)]) == found, size


@pytest.mark.parametrize("name", READERS)
def test_any_text_is_read_alike_in_pieces_and_lost_nowhere(name: str):
    chance = random.Random(name)
    for _ in range(3_000):
        text = "".join(chance.choices(WORDS, k=chance.randint(0, 12)))
        found = read(READERS[name](), [text])
        assert read(READERS[name](), list(text)) == found, text
        if all(isinstance(piece, str) for piece in found) and "thoughts" not in name:
            assert "".join(found) == text


@pytest.mark.parametrize("name", READERS)
def test_hostile_text_is_read_in_linear_time(name: str):
    """Pieces are tokens' texts. Forty answers of 16,384 take seconds; what is read again with each takes minutes."""
    began = time.process_time()
    for beginning in ("", "<tool_call>", "[TOOL_CALLS]", '{"'):
        for word in ("\n", "[", "<tool_call>{", "[TOOL_CALLS]a ", '"', "\\", "</think", "\n<", " ", "a"):
            reader = READERS[name]()
            for piece in [beginning, *([word] * 16_384)]:
                reader.add(piece)
            reader.end()
    assert time.process_time() - began < 15


def template_of(kind: str, folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(make_model(kind, folder))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("qwen2", "calls as hermes (its template writes <tool_call>); thoughts (its template names </think>)"),
        ("qwen3", "calls as hermes (its template writes <tool_call>); thoughts (its template names </think>)"),
        ("llama", 'calls as llama (its template writes {"name": …, "parameters": …}); no thoughts'),
        ("mistral", "calls as mistral (its template writes [TOOL_CALLS]); no thoughts"),
        ("gemma3", "no calls: its template writes them in no format that is known here; no thoughts"),
    ],
)
def test_the_format_follows_from_what_the_template_writes(kind: str, reason: str, tmp_path: Path):
    assert kind in MADE
    assert answer_format(template_of(kind, tmp_path)).reason == reason


def test_a_template_that_takes_back_one_call_alone_bounds_an_answer_to_one(tmp_path: Path):
    tokenizer = template_of("llama", tmp_path)
    refusal = "{% if (m.tool_calls or []) | length > 1 %}{{ raise_exception('one') }}{% endif %}"
    tokenizer.chat_template = f"{{% for m in messages %}}{refusal}{{% endfor %}}{tokenizer.chat_template}"
    form = answer_format(tokenizer)
    assert form.calls_max == 1
    assert "one an answer" in form.reason
    reader = form.reader(are_thoughts_opened=False, only_one_call=False)
    call = '{"name": "a", "parameters": {}}'
    assert read(reader, [f"{call}; {call}"]) == [Call("a", "{}")]


def test_a_prompt_that_ends_with_an_opened_tag_hides_no_format(tmp_path: Path):
    tokenizer = template_of("qwen3", tmp_path)
    tokenizer.chat_template += "{% if add_generation_prompt %}<think>\n{% endif %}"
    form = answer_format(tokenizer)
    assert form.calls is not None
    assert form.calls.name == "hermes"


@pytest.mark.parametrize(
    "template", ["{{ messages[5].content }}", "{% for m in messages %}{{ m.content }}{% endfor %}"]
)
def test_a_template_without_calls_leaves_answers_as_they_are(template: str, tmp_path: Path):
    tokenizer = template_of("llama", tmp_path)
    tokenizer.chat_template = template
    form = answer_format(tokenizer)
    assert form.reason == "no calls: its template takes none back; no thoughts"
    assert form.reader(are_thoughts_opened=False, only_one_call=False) is None
