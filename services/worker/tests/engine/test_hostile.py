"""Prompts, bodies and callers that mean harm: each is refused in words, and the engine goes on answering others."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from backtalk_worker.model.load import LoadedModel, load_model

from .conftest import Running, run_engine, until

HELLO = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}
JSON = {"content-type": "application/json"}
KEY = "a-key-of-the-engine"
JUDGE_KEY = "another-key-which-judges-have"


def ask(engine: Running, **fields: Any) -> httpx.Response:
    return engine.client.post("/v1/chat/completions", json={**HELLO, **fields})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chat_template", "OWN TEMPLATE {{ 6*7 }}"),
        ("tokenize", True),
        ("tools", None),
        ("conversation", "x"),
        ("messages", "x"),
        ("documents", "x"),
        ("tokenizer_kwargs", None),
        ("eos_token", "x"),
        ("my_list", [1]),
        ("my_object", {"a": 1}),
        ("long", "x" * 2_000),
    ],
)
def test_a_callers_template_and_what_changes_how_the_models_is_applied_are_refused_by_name(
    engine: Running, name: str, value: object
):
    answer = ask(engine, chat_template_kwargs={name: value})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, f"chat_template_kwargs.{name}")
    assert "OWN TEMPLATE" not in answer.text


@pytest.mark.parametrize(
    ("field", "items"), [("allowed_token_ids", "1.5"), ("prompt", "-1"), ("stop", "1"), ("bad_words", "{}")]
)
def test_a_list_of_nothing_but_wrong_values_is_answered_with_one_of_them(engine: Running, field: str, items: str):
    body = f'{{"prompt": "hi", "{field}": [{",".join([items] * 40_000)}]}}'
    answer = engine.client.post("/v1/completions", content=body, headers=JSON)
    assert (answer.status_code, len(answer.text) < 1_000) == (400, True)


def test_rows_that_no_room_is_for_are_refused_before_their_fields_are_read_for_each(engine: Running):
    body = {"prompt": [[1]] * 1_000, "stop_token_ids": [10**9], "max_tokens": 1}
    answer = engine.client.post("/v1/completions", json=body)
    assert (answer.status_code, "asks for 1000 answers" in answer.json()["error"]["message"]) == (400, True)


def test_stop_ids_of_which_all_that_may_be_drawn_are_some_are_refused(engine: Running, tiny: LoadedModel):
    every = list(range(tiny.vocabulary_size))
    body = {"prompt": [5, 6, 7], "max_tokens": 4, "min_tokens": 2, "stop_token_ids": every}
    refused = engine.client.post("/v1/completions", json=body)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "stop_token_ids")
    assert engine.client.post("/v1/completions", json={**body, "stop_token_ids": every[10:]}).status_code == 200


@pytest.mark.parametrize("field", ["stop", "cache_salt", "request_id"])
def test_a_text_that_is_kept_beside_an_answer_has_a_bound(engine: Running, field: str):
    body = {"prompt": [5, 6, 7], "max_tokens": 1}
    refused = engine.client.post("/v1/completions", json={**body, field: "x" * 1025})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, field)
    assert engine.client.post("/v1/completions", json={**body, field: "x" * 1000}).status_code == 200


def test_plain_values_go_to_the_models_template(engine: Running):
    assert ask(engine, chat_template_kwargs={"enable_thinking": False, "effort": "low", "n": 1}).status_code == 200
    assert ask(engine, chat_template_kwargs={str(i): 1 for i in range(17)}).status_code == 400


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {**HELLO, "chat_template": "x"}),
        ("/v1/chat/completions", {**HELLO, "rid": "x"}),
        ("/v1/chat/completions", {**HELLO, "stream": True, "stream_options": {"rid": 1}}),
        ("/v1/completions", {"prompt": "x", "rid": "x"}),
        ("/tokenize", {"prompt": "x", "rid": "x"}),
        ("/v1/load_lora_adapter", {"lora_name": "a", "lora_path": "b", "rid": "x"}),
    ],
)
def test_a_field_that_is_not_listed_is_refused_by_name(engine: Running, path: str, body: dict[str, object]):
    answer = engine.client.post(path, json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"].split(".")[-1] in ("rid", "chat_template")


def test_fields_that_clients_send_and_that_change_nothing_are_taken(engine: Running):
    harmless = {"user": "u", "metadata": {"a": "b"}, "store": False, "service_tier": "auto", "verbosity": "low"}
    assert ask(engine, **harmless, parallel_tool_calls=True, reasoning_effort="low").status_code == 200


@pytest.mark.parametrize("part", [b"{},", b"[],"])
def test_a_body_of_very_many_parts_is_refused_before_it_is_decoded(engine: Running, part: bytes):
    data = b'{"messages": [' + part * 5_000_000 + b"{}]}"
    answer = engine.client.post("/v1/chat/completions", content=data, headers=JSON)
    assert (answer.status_code, answer.json()["error"]["type"]) == (413, "Bad Request")


def test_marks_inside_a_text_are_no_parts_of_a_body(engine: Running):
    answer = ask(engine, messages=[{"role": "user", "content": '{[,"' * 60_000}])
    # It is over the context, which is known only of a body that was decoded.
    assert answer.json()["error"]["param"] == "input_tokens"
    assert ask(engine, messages=[{"role": "user", "content": "x"}] * 2_001).status_code == 400
    assert ask(engine, tools=[{}] * 1_001).status_code == 400


@pytest.mark.parametrize("where", ["body", "arguments"])
def test_a_string_that_is_never_closed_is_passed_over_once(engine: Running, where: str):
    text = "[" + "{}," * 60_000 + '"' + '\\"' * 150_000
    body = '{"messages": ' + text if where == "body" else json.dumps({**HELLO, **with_arguments(text)})
    answer = httpx.post(f"{engine.url}/v1/chat/completions", content=body, headers=JSON, timeout=10)
    assert answer.status_code == (413 if where == "body" else 400)


def test_commas_inside_the_texts_of_arguments_are_no_parts(engine: Running):
    assert ask(engine, **with_arguments(*[json.dumps({"code": "," * 9_000})] * 5)).status_code == 200


def with_arguments(*arguments: str) -> dict[str, object]:
    calls = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": each}} for each in arguments]
    return {"messages": [{"role": "assistant", "content": None, "tool_calls": calls}, *HELLO["messages"]]}


@pytest.mark.parametrize(
    "arguments",
    [
        ["[" + "{}," * 1_000_000 + "{}]"],
        ["[" + "1," * 450_000 + "1]"],
        ["[" + "{}," * 5_000 + "{}]"] * 10,
        ['"', "[" + "{}," * 100_000 + "{}]", '"'],
        ["[" * 100_000],
        ["x" * 600_000],
    ],
    ids=["objects", "numbers", "many calls", "open strings", "depth", "length"],
)
def test_arguments_of_tool_calls_that_are_costly_to_read_are_refused_unread(
    engine: Running, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
):
    read: list[str] = []
    loads = json.loads
    monkeypatch.setattr(
        "backtalk_worker.engine.inputs.prompts.json.loads",
        lambda text, **options: (read.append(text), loads(text, **options))[1],
    )
    body = json.dumps({**HELLO, **with_arguments(*arguments)})
    answer = httpx.post(f"{engine.url}/v1/chat/completions", content=body, headers=JSON, timeout=60)
    assert set(arguments).isdisjoint(read)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "messages"
    assert answer.json()["error"]["message"].startswith("Arguments of tool calls may h")


def test_arguments_nested_deeper_than_can_be_read_are_the_text_that_the_model_wrote(engine: Running):
    # The small template writes no tool calls.
    assert ask(engine, **with_arguments("[" * 15_000)).status_code == 200
    assert ask(engine, **with_arguments("[" * 5_000 + "]" * 5_000)).status_code == 200


@pytest.fixture
def never_renders(tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A template that does not end until the test says so."""
    end, render = threading.Event(), LoadedModel.render_chat

    def endless(self: LoadedModel, messages: Any, **options: Any) -> list[int]:
        if messages[0]["content"] == "endless":
            end.wait(60)
        return render(self, messages, **options)

    monkeypatch.setattr(LoadedModel, "render_chat", endless)
    yield end
    end.set()


def test_a_prompt_that_takes_too_long_is_refused_and_holds_up_no_one(
    tiny: LoadedModel, never_renders: threading.Event, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("backtalk_worker.engine.inputs.prompts.RENDER_SECONDS_MAX", 1.0)
    with run_engine(tiny) as running:
        answers: list[httpx.Response] = []
        body = {**HELLO, "messages": [{"role": "user", "content": "endless"}]}
        asking = threading.Thread(
            target=lambda: answers.append(httpx.post(f"{running.url}/v1/chat/completions", json=body))
        )
        asking.start()
        while not answers:
            assert running.client.get("/health").status_code == 200
            assert ask(running).status_code == 200
        asking.join(60)
        assert (answers[0].status_code, answers[0].json()["error"]["type"]) == (400, "BadRequestError")
        never_renders.set()


def test_the_loop_goes_on_turning_while_long_texts_are_made_into_prompts(tiny_folder: Path):
    with run_engine(load_model(tiny_folder), length_max=512) as running:
        # As many characters as are not refused at sight.
        body = {"prompt": "\u4f60\u597d " * 10_000}
        turns = 0

        async def both() -> None:
            nonlocal turns
            async with httpx.AsyncClient(base_url=running.url, timeout=60) as client:
                asking = asyncio.create_task(client.post("/tokenize", json=body))
                while not asking.done():
                    assert (await client.get("/health")).status_code == 200
                    turns += 1
                assert (await asking).status_code == 200

        asyncio.run(both())
        assert turns > 3


@pytest.fixture(scope="module")
def keyed(tiny_folder: Path) -> Iterator[Running]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BACKTALK_ENGINE_KEY", KEY)
        patch.setenv("BACKTALK_ENGINE_JUDGE_KEY", JUDGE_KEY)
        with run_engine(load_model(tiny_folder)) as running:
            patch.undo()
            yield running


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/models", "/v1/unload_lora_adapter", "/tokenize", "/v1/x"]
)
@pytest.mark.parametrize("given", [None, "", "Bearer", "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", "Bearer \xff"])
def test_a_caller_without_the_engines_key_gets_nothing(keyed: Running, path: str, given: str | None):
    headers = [] if given is None else [(b"authorization", given.encode("latin-1"))]
    for method in ("GET", "POST"):
        answer = keyed.client.request(method, path, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, 401)


def test_the_key_opens_the_engine_and_probes_need_none(keyed: Running):
    assert keyed.client.post("/v1/chat/completions", json=HELLO, headers={"authorization": f"Bearer {KEY}"}).is_success
    for path in ("/health", "/metrics"):
        assert keyed.client.get(path).status_code == 200


def test_a_judge_that_shares_the_engine_asks_and_loads_nothing(keyed: Running):
    judge, loader = ({"authorization": f"Bearer {key}"} for key in (JUDGE_KEY, KEY))
    assert keyed.client.post("/v1/chat/completions", json=HELLO, headers=judge).is_success
    assert keyed.client.post("/tokenize", json={"messages": HELLO["messages"]}, headers=judge).is_success
    named = {"lora_name": "backtalk-v1", "lora_path": "/adapters/backtalk-v1"}
    for path in ("/v1/load_lora_adapter", "/v1/unload_lora_adapter"):
        assert keyed.client.post(path, json=named, headers=judge).status_code == 401
        assert keyed.client.post(path, json=named, headers=loader).status_code in (400, 404)


def test_a_body_without_a_media_type_is_refused(engine: Running):
    for headers in ({}, {"content-type": ""}, {"content-type": "text/plain;application/json"}):
        data = json.dumps({"lora_name": "backtalk-v1"}).encode()
        answer = engine.client.post("/v1/unload_lora_adapter", content=data, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (415, 415)


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "attacker.example"},
        {"host": "attacker.example:30030"},
        {"host": ""},
        {"host": "127.0.0.1.attacker.example"},
        {"origin": "https://attacker.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_page_of_another_site_and_one_under_a_name_of_its_own_are_refused(engine: Running, headers: dict[str, str]):
    for path in ("/v1/models", "/metrics"):
        answer = engine.client.get(path, headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (403, "Forbidden")
    assert engine.client.post("/v1/chat/completions", json=HELLO, headers=headers).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "[::1]:30030", "127.0.0.1"])
def test_loopback_names_are_answered(engine: Running, host: str):
    assert engine.client.get("/v1/models", headers={"host": host}).status_code == 200


def test_adapters_come_from_below_their_folder_only(tiny_folder: Path, adapters: list[Path], tmp_path: Path):
    inside, outside = adapters[0].parent, tmp_path
    (outside / "a1").symlink_to(adapters[0])
    with run_engine(load_model(tiny_folder), adapter_dir=outside) as running:

        def load(path: object) -> httpx.Response:
            return running.client.post("/v1/load_lora_adapter", json={"lora_name": "one", "lora_path": str(path)})

        absent = load(outside / "absent")
        for path in (adapters[0], outside / "a1", f"{outside}/../{adapters[0].name}", "/etc", "/"):
            assert (load(path).status_code, load(path).text) == (404, absent.text)
    with run_engine(load_model(tiny_folder), adapter_dir=inside) as running:
        assert load(adapters[0]).status_code == 200
        until(lambda: running.metric("backtalk_engine_adapters") == 1, "the adapter")
