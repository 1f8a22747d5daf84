"""The HTTP side on a tiny model: shapes, invariants, errors, adapters in flight."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backtalk_worker.engine.outputs.adapters import load_adapter
from backtalk_worker.engine.outputs.batch import Batch
from backtalk_worker.engine.outputs.network import RaggedNetwork, RowInput
from backtalk_worker.model.load import load_model
from tests.engine.conftest import BASE, CHAT, MESSAGES, Running, run_engine, until, write_adapter

CAPTURE = {"return_token_ids": True, "logprobs": True}


def chat(engine: Running, **fields: Any) -> dict[str, Any]:
    answer = engine.client.post("/v1/chat/completions", json={**CHAT, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def frames(engine: Running, path: str = "/v1/chat/completions", /, **fields: Any) -> list[dict[str, Any]]:
    """All frames of a stream but the closing one, which must be `[DONE]`."""
    body = {**({} if "prompt" in fields else CHAT), **fields, "stream": True}
    with engine.client.stream("POST", path, json=body) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        lines = [line for line in answer.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def refused(engine: Running, path: str, body: Any) -> tuple[int, dict[str, Any]]:
    answer = engine.client.post(path, json=body)
    return answer.status_code, answer.json()["error"]


def test_ids_logprobs_and_usage_count_the_same(engine: Running):
    answer = chat(engine, **CAPTURE)
    choice = answer["choices"][0]
    count = answer["usage"]["completion_tokens"]
    assert len(choice["token_ids"]) == len(choice["logprobs"]["content"]) == count
    assert answer["usage"]["prompt_tokens"] == len(answer["prompt_token_ids"])
    assert answer["usage"]["total_tokens"] == count + len(answer["prompt_token_ids"])
    assert all(entry["top_logprobs"] == [] for entry in choice["logprobs"]["content"])


def test_nothing_is_captured_that_was_not_asked_for(engine: Running):
    answer = chat(engine)
    assert answer["prompt_token_ids"] is None
    assert answer["choices"][0]["token_ids"] is None
    assert answer["choices"][0]["logprobs"] is None


def test_a_stream_has_a_role_frame_then_a_frame_per_token_then_usage(engine: Running):
    got = frames(engine, **CAPTURE, stream_options={"include_usage": True})
    whole = chat(engine, **CAPTURE)
    role, *tokens, usage = got
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert role["prompt_token_ids"] == whole["prompt_token_ids"]
    assert "token_ids" not in role["choices"][0]
    assert [t["choices"][0]["token_ids"] for t in tokens] == [[i] for i in whole["choices"][0]["token_ids"]]
    assert [t["choices"][0]["finish_reason"] for t in tokens] == [None] * (len(tokens) - 1) + ["length"]
    assert ["stop_reason" in t["choices"][0] for t in tokens] == [False] * (len(tokens) - 1) + [True]
    assert usage["choices"] == []
    assert usage["usage"] == {"prompt_tokens": 36, "total_tokens": 42, "completion_tokens": 6}
    text = "".join(t["choices"][0]["delta"]["content"] for t in tokens)
    assert text == whole["choices"][0]["message"]["content"]


def test_without_usage_the_last_frame_carries_the_fingerprint(engine: Running):
    got = frames(engine)
    assert ["system_fingerprint" in frame for frame in got] == [False] * (len(got) - 1) + [True]


def test_several_rows_draw_differently_and_a_seed_repeats_them(engine: Running):
    answers = [[c["token_ids"] for c in chat(engine, n=3, **CAPTURE)["choices"]] for _ in range(2)]
    assert answers[0] == answers[1]
    assert len({tuple(ids) for ids in answers[0]}) == 3
    streamed = frames(engine, n=2, return_token_ids=True)
    assert [f["choices"][0]["index"] for f in streamed[:2]] == [0, 1]
    assert [t for f in streamed[2:] if f["choices"][0]["index"] == 1 for t in f["choices"][0]["token_ids"]] == answers[
        0
    ][1]


def test_a_completion_takes_text_ids_and_several_prompts(engine: Running):
    ids = engine.client.post("/tokenize", json={"prompt": "Hi there"}).json()["tokens"]
    fields = {"max_tokens": 3, "seed": 1, "logprobs": 0, "return_token_ids": True}
    by_text, by_ids, several = (
        engine.client.post("/v1/completions", json={"prompt": p, **fields}).json()
        for p in ("Hi there", ids, [ids, [*ids, 5]])
    )
    assert by_text["choices"][0]["token_ids"] == by_ids["choices"][0]["token_ids"]
    assert by_text["choices"][0]["prompt_token_ids"] == ids
    assert [c["prompt_token_ids"] for c in several["choices"]] == [ids, [*ids, 5]]
    assert several["usage"] == {**several["usage"], "prompt_tokens": 5, "completion_tokens": 6}
    logprobs = by_ids["choices"][0]["logprobs"]
    assert len(logprobs["tokens"]) == len(logprobs["token_logprobs"]) == len(logprobs["top_logprobs"]) == 3


def test_a_streamed_completion_names_the_prompt_in_its_first_frame_only(engine: Running):
    got = frames(engine, "/v1/completions", prompt=[5, 6], max_tokens=3, logprobs=0, return_token_ids=True)
    assert [f["choices"][0]["prompt_token_ids"] for f in got] == [[5, 6], None, None]
    assert got[-1]["choices"][0]["finish_reason"] == "length"


def test_a_prompt_is_scored_with_null_for_its_first_id(engine: Running):
    body = {"prompt": [5, 6, 7], "max_tokens": 1, "prompt_logprobs": 1}
    scores = engine.client.post("/v1/completions", json=body).json()["choices"][0]["prompt_logprobs"]
    assert scores[0] is None
    assert [next(iter(s)) for s in scores[1:]] == ["6", "7"]
    assert all(set(next(iter(s.values()))) == {"logprob", "rank", "decoded_token"} for s in scores[1:])


def test_a_temperature_next_to_nothing_is_greedy(engine: Running):
    body = {"prompt": [5, 6, 7], "max_tokens": 4, "logprobs": 0}
    asked = [engine.client.post("/v1/completions", json=body | {"temperature": t}).json() for t in (1e-38, 0)]
    assert asked[0]["choices"] == asked[1]["choices"]


def test_listed_ids_are_scored_at_the_first_position(engine: Running):
    body = {"prompt": [5, 6, 7], "max_tokens": 1, "temperature": 0, "logprobs": 0, "logprob_token_ids": [11, 12]}
    answer = engine.client.post("/v1/completions", json={**body, "return_tokens_as_token_ids": True}).json()
    top = answer["choices"][0]["logprobs"]["top_logprobs"][0]
    assert {"token_id:11", "token_id:12"} <= set(top)
    bounded = {**body, "allowed_token_ids": [11, 12], "return_token_ids": True}
    assert engine.client.post("/v1/completions", json=bounded).json()["choices"][0]["token_ids"][0] in (11, 12)


def test_ids_of_which_none_may_be_drawn_yet_are_refused(engine: Running):
    body = {"prompt": [5, 6, 7], "max_tokens": 4, "min_tokens": 2, "allowed_token_ids": [9], "stop_token_ids": [9]}
    refused = engine.client.post("/v1/completions", json=body)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "allowed_token_ids")
    assert engine.client.post("/v1/completions", json={**body, "allowed_token_ids": [9, 10]}).status_code == 200


def test_a_stop_id_ends_the_answer_and_is_named(engine: Running):
    ids = chat(engine, **CAPTURE)["choices"][0]["token_ids"]
    choice = chat(engine, **CAPTURE, stop_token_ids=[ids[2]])["choices"][0]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", ids[2])
    assert choice["token_ids"] == ids[:3]


def test_models_tokenize_and_version_answer(engine: Running):
    models = engine.client.get("/v1/models").json()["data"]
    assert [(m["id"], m["parent"], m["max_model_len"]) for m in models] == [(BASE, None, 512)]
    chat_ids = engine.client.post("/tokenize", json={"messages": MESSAGES, "return_token_strs": True}).json()
    assert chat_ids["tokens"] == chat(engine, **CAPTURE)["prompt_token_ids"]
    assert len(chat_ids["token_strs"]) == chat_ids["count"] == 36
    text = engine.client.post("/detokenize", json={"tokens": [1, 9690, 198]}).json()
    assert text == {"prompt": "<|im_start|>system\n"}
    assert "version" in engine.client.get("/version").json()
    assert engine.client.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "kind", "param"),
    [
        ({"model": "nope", "messages": MESSAGES}, 404, "NotFoundError", "model"),
        ({}, 400, "Bad Request", "body.messages"),
        ({"messages": []}, 400, "BadRequestError", None),
        ({"messages": [{"role": "user", "content": "word " * 600}]}, 400, "BadRequestError", "input_tokens"),
        ({"messages": [{"role": "user", "content": "w" * 400_000}]}, 400, "BadRequestError", "input_tokens"),
        ({**CHAT, "max_tokens": 0}, 400, "BadRequestError", "max_tokens"),
        ({**CHAT, "max_tokens": 9999}, 400, "BadRequestError", "max_tokens"),
        ({**CHAT, "temperature": -1}, 400, "BadRequestError", "temperature"),
        ({**CHAT, "temperature": "hot"}, 400, "Bad Request", "body.temperature"),
        ({**CHAT, "top_p": 0}, 400, "BadRequestError", "top_p"),
        ({**CHAT, "n": 0}, 400, "BadRequestError", None),
        ({**CHAT, "top_logprobs": 2}, 400, "BadRequestError", "top_logprobs"),
        ({**CHAT, "logprobs": True, "top_logprobs": 30}, 400, "BadRequestError", "logprobs"),
        ({**CHAT, "stream_options": {}}, 400, "BadRequestError", "stream_options"),
        ({**CHAT, "cache_salt": ""}, 400, "BadRequestError", "cache_salt"),
        ({**CHAT, "logprob_token_ids": [5]}, 400, "BadRequestError", "logprob_token_ids"),
        ({**CHAT, "stop_token_ids": [99999]}, 400, "BadRequestError", "stop_token_ids"),
        ({**CHAT, "frequency_penalty": 1}, 400, "BadRequestError", "frequency_penalty"),
        ({**CHAT, "response_format": {"type": "json_object"}}, 400, "BadRequestError", "response_format"),
    ],
)
def test_a_bad_chat_request_is_refused_in_the_dialects_shape(
    engine: Running, body: dict[str, Any], status: int, kind: str, param: str | None
):
    got, error = refused(engine, "/v1/chat/completions", body)
    assert (got, error["type"], error["param"], error["code"]) == (status, kind, param, status)
    assert set(error) == {"message", "type", "param", "code"}


def test_the_words_of_an_error_never_quote_the_prompt(engine: Running):
    body = {"messages": [{"role": "user", "content": "canary-9"}], "temperature": "canary-9"}
    assert "canary-9" not in refused(engine, "/v1/chat/completions", body)[1]["message"]


@pytest.mark.parametrize("prompt", [[], None, [1, 999999], [-1], [[]], list(range(600))])
def test_a_bad_completion_prompt_is_refused(engine: Running, prompt: Any):
    assert refused(engine, "/v1/completions", {"prompt": prompt})[0] == 400


@pytest.mark.parametrize(
    "data", [b"", b'{"messages": ', b"[" * 10_000, b'{"messages": [{"role": "user", "content": "\xff"}]}', b"[1]"]
)
def test_a_body_that_is_no_json_object_is_a_400(engine: Running, data: bytes):
    headers = {"content-type": "application/json"}
    answer = engine.client.post("/v1/chat/completions", content=data, headers=headers)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "Bad Request")


def test_other_types_paths_methods_and_sizes_are_refused(engine: Running):
    post = engine.client.post
    assert post("/v1/chat/completions", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    assert (
        post(
            "/v1/chat/completions", content=b" " * (17 * 2**20), headers={"content-type": "application/json"}
        ).status_code
        == 413
    )
    assert engine.client.get("/v1/nope").json() == {"detail": "Not Found"}
    assert engine.client.get("/v1/chat/completions").json() == {"detail": "Method Not Allowed"}


def test_adapters_are_loaded_listed_used_and_unloaded(engine: Running, adapters: list[Path]):
    post = engine.client.post
    assert refused(engine, "/v1/chat/completions", {**CHAT, "model": "v1"})[0] == 404
    loaded = post("/v1/load_lora_adapter", json={"lora_name": "v1", "lora_path": str(adapters[0])})
    assert (loaded.status_code, loaded.text) == (200, "Success: LoRA adapter 'v1' added successfully.")
    models = engine.client.get("/v1/models").json()["data"]
    assert [(m["id"], m["parent"]) for m in models] == [(BASE, None), ("v1", BASE)]
    answer = chat(engine, model="v1", **CAPTURE)
    assert answer["model"] == "v1"
    assert answer["choices"][0]["token_ids"] != chat(engine, **CAPTURE)["choices"][0]["token_ids"]
    gone = post("/v1/unload_lora_adapter", json={"lora_name": "v1"})
    assert (gone.status_code, gone.text) == (200, "Success: LoRA adapter 'v1' removed successfully.")
    assert refused(engine, "/v1/chat/completions", {**CHAT, "model": "v1"})[0] == 404


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"lora_name": BASE, "lora_path": "PATH"}, 400, "InvalidUserInput"),
        ({"lora_name": "", "lora_path": ""}, 400, "InvalidUserInput"),
        ({"lora_name": "w"}, 400, "Bad Request"),
        ({"lora_name": "w", "lora_path": "/no/such/adapter"}, 404, "NotFoundError"),
        ({"lora_name": "w", "lora_path": "PATH", "load_inplace": True}, 400, "BadRequestError"),
        ({"lora_name": "taken", "lora_path": "PATH"}, 400, "InvalidUserInput"),
    ],
)
def test_a_bad_adapter_request_is_refused(
    engine: Running, adapters: list[Path], body: dict[str, Any], status: int, kind: str
):
    path = str(adapters[0])
    engine.client.post("/v1/load_lora_adapter", json={"lora_name": "taken", "lora_path": path})
    got, error = refused(
        engine, "/v1/load_lora_adapter", {key: path if value == "PATH" else value for key, value in body.items()}
    )
    assert (got, error["type"]) == (status, kind)


def test_unloading_what_is_not_loaded_is_a_404(engine: Running):
    assert refused(engine, "/v1/unload_lora_adapter", {"lora_name": "never"})[0] == 404


def strictly(text: str) -> Any:
    """JSON that says nothing which JSON has not."""

    def no_number(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=no_number)


def test_the_logprob_of_an_id_that_may_not_be_drawn_is_the_least_there_is(engine: Running):
    body = {"prompt": [5, 6], "max_tokens": 1, "logprobs": 0, "allowed_token_ids": [11], "logprob_token_ids": [11, 12]}
    answer = strictly(engine.client.post("/v1/completions", json=body).text)
    assert sorted(answer["choices"][0]["logprobs"]["top_logprobs"][0].values()) == [-9999.0, 0.0]


def test_weights_that_give_no_finite_numbers_end_their_answers_with_an_error(
    engine: Running, tiny_folder: Path, tmp_path: Path
):
    folder = write_adapter(tiny_folder, tmp_path / "overflowing", seed=3, size=1e30)
    engine.client.post("/v1/load_lora_adapter", json={"lora_name": "overflowing", "lora_path": str(folder)})
    body = {"prompt": [5, 6, 7], "max_tokens": 3, "model": "overflowing"}
    failures = engine.metric("backtalk_engine_errors_total")
    for asked in ({}, {"logprobs": 0}, {"logprobs": 0, "temperature": 0}, {"prompt_logprobs": 1}):
        answer = engine.client.post("/v1/completions", json={**body, **asked})
        error = strictly(answer.text)["error"]
        assert (answer.status_code, error["type"]) == (500, "InternalServerError")
        assert error["message"] == "The weights of `overflowing` give numbers that are not finite."
    assert frames(engine, "/v1/completions", **body, logprobs=0)[-1]["error"]["code"] == 500
    assert engine.metric("backtalk_engine_errors_total") - failures == 5
    assert chat(engine)["model"] == BASE


def test_an_answer_in_flight_keeps_the_adapter_that_is_unloaded(engine: Running, adapters: list[Path]):
    load = {"lora_name": "v9", "lora_path": str(adapters[1])}
    fields = {"model": "v9", "max_tokens": 200, "ignore_eos": True, **CAPTURE}
    engine.client.post("/v1/load_lora_adapter", json=load)
    undisturbed = chat(engine, **fields)["choices"][0]["token_ids"]
    ids: list[int] = []
    with engine.client.stream("POST", "/v1/chat/completions", json={**CHAT, **fields, "stream": True}) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                ids += json.loads(line[6:])["choices"][0].get("token_ids") or []
                if len(ids) == 1:
                    assert engine.client.post("/v1/unload_lora_adapter", json={"lora_name": "v9"}).status_code == 200
                    assert refused(engine, "/v1/chat/completions", {**CHAT, "model": "v9"})[0] == 404
    assert ids == undisturbed


@pytest.fixture
def changing_its_mind(monkeypatch: pytest.MonkeyPatch, tiny_folder: Path, adapters: list[Path]) -> Iterator[Running]:
    """An engine that serves `before`, and computes every token after an answer's third with the weights of `after`."""
    honest = Batch._input
    after = None

    def lying(live: Any, count: int) -> RowInput:
        row = honest(live, count)
        return replace(row, adapter=after) if live.row.answer_length >= 3 else row

    monkeypatch.setattr(Batch, "_input", staticmethod(lying))
    with run_engine(load_model(tiny_folder)) as running:
        body = {"lora_name": "before", "lora_path": str(adapters[0])}
        assert running.client.post("/v1/load_lora_adapter", json=body).status_code == 200
        after = load_adapter("after", adapters[1], RaggedNetwork(load_model(tiny_folder), BASE).layer_shapes, 64)
        yield running


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_each_frame_names_the_weights_that_computed_its_token(changing_its_mind: Running, path: str):
    prompt = {"prompt": [5, 6, 7]} if path == "/v1/completions" else {}
    fields = {**prompt, "model": "before", "max_tokens": 6, "ignore_eos": True, "seed": 7}
    streamed = frames(changing_its_mind, path, **fields, stream_options={"include_usage": True})
    tokens = [frame for frame in streamed if frame["choices"] and "role" not in frame["choices"][0].get("delta", {})]
    assert [frame["model"] for frame in tokens] == ["before"] * 3 + ["after"] * 3
    assert (streamed[0]["model"], streamed[-1]["model"]) == ("before", "after")
    assert streamed[-1]["choices"] == []
    messages = {} if path == "/v1/completions" else CHAT
    whole = changing_its_mind.client.post(path, json={**messages, **fields})
    assert whole.json()["model"] == "after"


def test_many_swaps_under_streams_cut_nothing(engine: Running, adapters: list[Path]):
    stop = threading.Event()
    finished: list[str] = []

    def stream(seed: int) -> None:
        while not stop.is_set():
            models = [m["id"] for m in engine.client.get("/v1/models").json()["data"] if m["id"].startswith("s")]
            got = frames(engine, model=models[-1], seed=seed, max_tokens=20, return_token_ids=True, ignore_eos=True)
            assert sum(len(f["choices"][0].get("token_ids") or ()) for f in got) == 20
            assert {f["model"] for f in got} == {models[-1]}
            finished.append(models[-1])

    def load(version: int) -> None:
        body = {"lora_name": f"s{version}", "lora_path": str(adapters[version % 2])}
        assert engine.client.post("/v1/load_lora_adapter", json=body).status_code == 200

    load(0)
    with ThreadPoolExecutor(8) as pool:
        running = [pool.submit(stream, seed) for seed in range(8)]
        for version in range(1, 6):
            load(version)
            until(lambda name=f"s{version}": name in finished, "an answer by the new version")
            # Streams read the list of models before they ask, so the newest but one may still be asked for.
            if version >= 2:
                body = {"lora_name": f"s{version - 2}"}
                assert engine.client.post("/v1/unload_lora_adapter", json=body).status_code == 200
        stop.set()
        for future in running:
            future.result()
    assert set(finished) >= {f"s{version}" for version in range(1, 6)}


def test_a_loop_that_dies_ends_streams_with_an_error_and_the_process_with_two(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    honest = Batch._input

    def failing(live: Any, count: int) -> RowInput:
        if live.row.answer_length == 2:
            raise RuntimeError("no more")
        return honest(live, count)

    monkeypatch.setattr(Batch, "_input", staticmethod(failing))
    with run_engine(load_model(tiny_folder), exit_code=2) as running:
        *tokens, error = frames(running)
        assert len(tokens) == 3
        assert (error["error"]["type"], error["error"]["code"]) == ("InternalServerError", 500)
