"""Calls and thoughts in answers, as clients get them. The words are given, since random weights call no tools."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import OpenAI

from backtalk_worker.model.load import LoadedModel, load_model
from tests.engine.conftest import BASE, Running, run_engine, say
from tests.model.made import make_model

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "rain",
        "description": "Whether it rains.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
ASKED = [{"role": "user", "content": "Rain in Rome?"}]
ROME = '{"city": "Rome", "days": [1, 2.5], "note": "ü\\n"}'
HERMES = f'<tool_call>\n{{"name": "rain", "arguments": {ROME}}}\n</tool_call>'
CALLS = {
    "qwen2": HERMES,
    "qwen3": f"<think>\nThe tool\nknows.\n</think>\n\n{HERMES}",
    "llama": f'{{"name": "rain", "parameters": {ROME}}}',
    "mistral": f'[TOOL_CALLS][{{"name": "rain", "arguments": {ROME}}}]',
}
"""As the made templates write them."""
TWICE = {
    "qwen2": f"Sure. {HERMES}\n{HERMES}",
    "qwen3": f"Sure. {HERMES}\n{HERMES}",
    "llama": "; ".join([CALLS["llama"]] * 2),
    "mistral": f"[TOOL_CALLS]rain[ARGS]{ROME}[TOOL_CALLS]rain[ARGS]{ROME}",
}
BROKEN = {
    "qwen2": '<tool_call>\n{"name": "rain", "arguments": {"city": }}\n</tool_call>',
    "qwen3": '<think>\n</think>\n\n<tool_call>\n{"name": "rain"}\n</tool_call>',
    "llama": '<|python_tag|>rain.call(city="Rome")',
    "mistral": '[TOOL_CALLS] [{"name": "rain"}, {"name": "rain", "arguments": {}}]',
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("calling")
    return {kind: make_model(kind, folder / kind) for kind in CALLS}


@contextmanager
def speaking(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *texts: str, mode: str = "processed_logprobs"
) -> Iterator[tuple[Running, LoadedModel]]:
    """The engine, whose answers are these texts."""
    model = load_model(folder)
    say(monkeypatch, model, *texts)
    with run_engine(model, logprobs_mode=mode) as running:
        yield running, model


def ask(running: Running, **fields: Any) -> httpx.Response:
    body = {"model": BASE, "messages": ASKED, "tools": [TOOL], "max_tokens": 400, "logprobs": True}
    return running.client.post("/v1/chat/completions", json={**body, "return_token_ids": True, **fields})


def frames(running: Running, **fields: Any) -> list[dict[str, Any]]:
    lines = ask(running, stream=True, **fields).text.split("\n\n")
    assert lines[-2] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]


def gathered(streamed: list[dict[str, Any]]) -> tuple[dict[str, Any], list[int], list[float], str]:
    """A client's view: the message, and the ids, logprobs and end that came with it."""
    message: dict[str, Any] = {"content": "", "reasoning": "", "tool_calls": []}
    ids, logprobs, ended = [], [], ""
    for choice in (frame["choices"][0] for frame in streamed[1:]):
        delta = choice["delta"]
        message["content"] += delta.get("content") or ""
        message["reasoning"] += delta.get("reasoning") or ""
        for call in delta.get("tool_calls", []):
            if "id" in call:
                assert call["index"] == len(message["tool_calls"])
                # Clients keep the first piece, and add the others' arguments to its own.
                message["tool_calls"].append({**call, "function": dict(call["function"])})
            else:
                message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]
        ids += choice["token_ids"]
        logprobs += [one["logprob"] for one in (choice["logprobs"] or {}).get("content", [])]
        ended = choice["finish_reason"] or ended
    return message, ids, logprobs, ended


def without_ids(calls: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(call["function"]["name"], call["function"]["arguments"]) for call in calls]


@pytest.mark.parametrize("kind", CALLS)
def test_a_call_is_given_whole_and_streamed_beside_the_ids_and_logprobs_of_the_raw_answer(
    monkeypatch: pytest.MonkeyPatch, models: dict[str, Path], kind: str
):
    with speaking(monkeypatch, models[kind], CALLS[kind], mode="raw_logprobs") as (running, model):
        whole = ask(running).json()["choices"][0]
        streamed = frames(running)
    raw = [*model.encode(CALLS[kind]), model.end_ids[0]]
    message, ids, logprobs, ended = gathered(streamed)
    expected = "The tool\nknows." if kind == "qwen3" else None
    assert (whole["finish_reason"], ended) == ("tool_calls", "tool_calls")
    assert (whole["message"]["content"], message["content"]) == (None, "")
    assert (whole["message"]["reasoning"], message["reasoning"] or None) == (expected, expected)
    assert without_ids(whole["message"]["tool_calls"]) == [("rain", ROME)] == without_ids(message["tool_calls"])
    assert whole["token_ids"] == raw == ids
    assert logprobs == pytest.approx([one["logprob"] for one in whole["logprobs"]["content"]], abs=1e-4)
    assert len(logprobs) == len(raw)
    form = r"[A-Za-z0-9]{9}" if kind == "mistral" else r"chatcmpl-tool-[0-9a-f]{16}"
    assert all(re.fullmatch(form, call["id"]) for call in (*whole["message"]["tool_calls"], *message["tool_calls"]))


@pytest.mark.parametrize("kind", CALLS)
def test_a_history_with_the_call_as_javascript_writes_it_goes_on_from_the_ids_that_were_answered(
    monkeypatch: pytest.MonkeyPatch, models: dict[str, Path], kind: str
):
    with speaking(monkeypatch, models[kind], CALLS[kind], "No rain.") as (running, _):
        first = ask(running, seed=0).json()
        message = first["choices"][0]["message"]
        [call] = message["tool_calls"]
        # Without spaces after commas and colons.
        words = json.dumps(json.loads(call["function"]["arguments"]), ensure_ascii=False, separators=(",", ":"))
        echoed = {**message, "tool_calls": [{**call, "function": {"name": "rain", "arguments": words}}]}
        history = [*ASKED, echoed, {"role": "tool", "tool_call_id": call["id"], "content": "no"}]
        second = ask(running, messages=history, seed=1).json()
    before = [*first["prompt_token_ids"], *first["choices"][0]["token_ids"]]
    assert second["prompt_token_ids"][: len(before)] == before
    assert second["choices"][0]["message"]["content"] == "No rain."
    assert "tool_calls" not in second["choices"][0]["message"]
    assert second["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("kind", TWICE)
def test_two_calls_are_told_apart_and_one_is_given_where_a_client_takes_no_more(
    monkeypatch: pytest.MonkeyPatch, models: dict[str, Path], kind: str, parallel: bool
):
    with speaking(monkeypatch, models[kind], TWICE[kind]) as (running, _):
        whole = ask(running, parallel_tool_calls=parallel).json()["choices"][0]["message"]
        streamed = gathered(frames(running, parallel_tool_calls=parallel))[0]
    for message in (whole, streamed):
        assert without_ids(message["tool_calls"]) == [("rain", ROME)] * (2 if parallel else 1)
        assert (message["content"] or "") == ("Sure. " if kind.startswith("qwen") else "")
    assert len({call["id"] for call in whole["tool_calls"]}) == len(whole["tool_calls"])


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_no_whole_call_stays_text(monkeypatch: pytest.MonkeyPatch, models: dict[str, Path], kind: str):
    with speaking(monkeypatch, models[kind], BROKEN[kind], CALLS[kind]) as (running, model):
        whole = ask(running, seed=0).json()["choices"][0]
        streamed = gathered(frames(running, seed=0))
        cut = ask(running, seed=1, max_tokens=len(model.encode(CALLS[kind])) - 24).json()["choices"][0]
    said = BROKEN[kind].removeprefix("<think>\n</think>\n\n")
    assert whole["message"]["content"] == said == streamed[0]["content"]
    assert "tool_calls" not in whole["message"]
    assert (whole["finish_reason"], streamed[3]) == ("stop", "stop")
    assert cut["finish_reason"] == "length"
    assert "tool_calls" not in cut["message"]
    assert "rain" in cut["message"]["content"]


@pytest.mark.parametrize("fields", [{"tools": None}, {"tools": []}, {"tool_choice": "none"}])
@pytest.mark.parametrize("kind", ["qwen3", "mistral"])
def test_an_answer_stays_text_where_the_request_has_no_tools_to_call(
    monkeypatch: pytest.MonkeyPatch, models: dict[str, Path], kind: str, fields: dict[str, Any]
):
    with speaking(monkeypatch, models[kind], CALLS[kind]) as (running, _):
        choice = ask(running, **fields).json()["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"] == CALLS[kind].removeprefix("[TOOL_CALLS]")
    assert choice["message"]["reasoning"] is None


def test_thoughts_that_the_prompt_opens_or_that_are_cut_are_no_text(
    monkeypatch: pytest.MonkeyPatch, models: dict[str, Path]
):
    model = load_model(models["qwen3"])
    model.tokenizer.chat_template = str(model.tokenizer.chat_template) + "<think>\n"
    say(monkeypatch, model, "It may\nrain.\n\n</think>\n\nYes.")
    with run_engine(model) as running:
        message = ask(running).json()["choices"][0]["message"]
        streamed = gathered(frames(running))[0]
        cut = ask(running, max_tokens=8).json()["choices"][0]
    assert (message["reasoning"], message["content"]) == ("It may\nrain.", "Yes.")
    assert (streamed["reasoning"], streamed["content"]) == ("It may\nrain.", "Yes.")
    assert (cut["message"]["content"], cut["finish_reason"]) == (None, "length")
    assert "It may\nrain.".startswith(cut["message"]["reasoning"])


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "rain"}}])
def test_a_call_that_must_be_made_is_refused_by_name(engine: Running, choice: object):
    answer = ask(engine, tool_choice=choice)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "tool_choice"


def test_an_answer_of_hostile_text_is_given_as_it_is(monkeypatch: pytest.MonkeyPatch, models: dict[str, Path]):
    texts = [
        '<tool_call>{"name": "rain", "arguments": {"x": ' + "[" * 120 + "]" * 120 + "}}</tool_call>",
        '<tool_call>\n{"name": "rain", "arguments": ' + "[" * 300,
        '<tool_call>{"name": "rain", "arguments": {"x": 1e999}}</tool_call>',
        '<tool_call>{"name": "rain", "arguments": {"x": NaN}}</tool_call>',
        '<tool_call>{"name": "\\ud800", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "rain", "arguments": {"x": "\\ud800"}}</tool_call>',
        "</tool_call><tool_call><tool_call>{}</tool_call></think><think>",
        f'<tool_call>{{"name": "{"n" * 300}", "arguments": {{}}}}</tool_call>',
    ]
    with speaking(monkeypatch, models["qwen3"], *texts) as (running, _):
        found = [ask(running, seed=at).json()["choices"][0]["message"] for at in range(len(texts))]
        streamed = [gathered(frames(running, seed=at))[0] for at in range(len(texts))]
        assert running.client.get("/health").status_code == 200
    assert [message["content"] for message in found] == texts
    assert [message["content"] for message in streamed] == texts
    assert not any("tool_calls" in message for message in found)


def test_answers_of_one_request_are_read_apart(monkeypatch: pytest.MonkeyPatch, models: dict[str, Path]):
    with speaking(monkeypatch, models["qwen2"], CALLS["qwen2"], "Dry.") as (running, _):
        called, said = ask(running, n=2, seed=0).json()["choices"]
    assert (called["finish_reason"], said["finish_reason"]) == ("tool_calls", "stop")
    assert (len(called["message"]["tool_calls"]), said["message"]["content"]) == (1, "Dry.")


def test_the_official_client_runs_a_tool_and_gets_its_answer(monkeypatch: pytest.MonkeyPatch, models: dict[str, Path]):
    long = HERMES.replace("Rome", "R" * 200)
    with speaking(monkeypatch, models["qwen3"], long, "Dry.") as (running, _):
        client = OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0)
        said: list[Any] = []
        asked: list[Any] = [*ASKED]
        tools: Any = [TOOL]
        for seed in (0, 1):
            with client.chat.completions.stream(
                model=BASE, messages=asked + said, tools=tools, seed=seed, max_tokens=600
            ) as stream:
                message = stream.get_final_completion().choices[0].message
            said.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls or []:
                city = json.loads(call.function.arguments)["city"]
                said.append({"role": "tool", "tool_call_id": call.id, "content": f"{city}: no"})
    assert [each["role"] for each in said] == ["assistant", "tool", "assistant"]
    assert said[1]["content"] == f"{'R' * 200}: no"
    assert said[2]["content"] == "Dry."
