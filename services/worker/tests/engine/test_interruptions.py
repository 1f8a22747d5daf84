"""What cuts answers short: clients that go away, a full queue, a stop."""

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import httpx
import pytest

from backtalk_worker.engine.outputs.batch import Batch, Updates
from backtalk_worker.engine.outputs.engine import Engine, Generation
from backtalk_worker.model.load import LoadedModel, load_model
from tests.engine.conftest import CHAT, Running, run_engine, say, until


def test_a_client_that_goes_away_frees_its_rows(engine: Running, steps: threading.Semaphore):
    def running() -> float:
        steps.release()
        return engine.metric("vllm:num_requests_running")

    def answered() -> float:
        return engine.metric("vllm:generation_tokens_total")

    body = {**CHAT, "max_tokens": 470, "n": 16, "ignore_eos": True, "stream": True}
    before = answered()
    steps.release(2)
    with engine.client.stream("POST", "/v1/chat/completions", json=body) as answer:
        # Held: an iterator that is let go of closes the connection.
        lines = answer.iter_lines()
        next(lines)
        until(lambda: running() == 16, "the rows to run")
    until(lambda: running() == 0, "the rows to be freed")
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{engine.url}/v1/chat/completions", json={**body, "stream": False}, timeout=httpx.Timeout(60, read=0.1)
        )
    until(lambda: running() == 0, "the rows of the second request to be freed")
    assert 16 <= answered() - before < 16 * 470


def test_one_more_than_rows_and_queue_hold_is_a_503(tiny_folder: Path, steps: threading.Semaphore):
    with run_engine(load_model(tiny_folder), rows_max=1, waiting_max=1) as small, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(small.client.post, "/v1/chat/completions", json=CHAT) for _ in range(4)]
        # Nothing is computed yet, so what has an answer was refused.
        refusals = [answer.result(60) for _, answer in zip(range(2), as_completed(asked, 60), strict=False)]
        steps.release(100)
        assert sorted(answer.result(60).status_code for answer in asked) == [200, 200, 503, 503]
        assert refusals[0].json()["error"]["type"] == "Service Unavailable"
        assert small.metric('backtalk_engine_errors_total{code="engine_busy"}') == 2


def test_stopping_ends_answers_with_abort(tiny_folder: Path):
    reasons: list[str | None] = []
    with run_engine(load_model(tiny_folder), rows_max=8, prefill_beside_answers=1) as running:
        body = {**CHAT, "max_tokens": 470, "n": 8, "ignore_eos": True, "stream": True}

        def read() -> None:
            with httpx.stream("POST", f"{running.url}/v1/chat/completions", json=body, timeout=60) as answer:
                for line in answer.iter_lines():
                    if line.startswith("data: {"):
                        reasons.append(json.loads(line[6:])["choices"][0]["finish_reason"])

        reader = threading.Thread(target=read)
        reader.start()
        until(lambda: len(reasons) > 10, "the stream to begin")
    reader.join(60)
    assert reasons[-1] in ("abort", "length")
    assert not reader.is_alive()


def test_a_request_that_is_complete_after_answers_were_ended_is_told_that_the_engine_stops(tiny_folder: Path):
    begun, late = threading.Event(), list[bytes]()
    body = json.dumps({**CHAT, "max_tokens": 4}).encode()

    def ask(url: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        long = {**CHAT, "max_tokens": 470, "ignore_eos": True, "stream": True}
        with (
            socket.create_connection((host, int(port)), timeout=60) as slow,
            httpx.stream("POST", f"{url}/v1/chat/completions", json=long, timeout=60) as answer,
        ):
            slow.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:5])
            for line in answer.iter_lines():
                begun.set()
                if '"finish_reason":"abort"' in line.replace(" ", ""):
                    break
            slow.sendall(body[5:])
            late.append(slow.recv(65_536))

    with run_engine(load_model(tiny_folder), shutdown_seconds=0) as running:
        reader = threading.Thread(target=ask, args=(running.url,))
        reader.start()
        assert begun.wait(60)
    reader.join(60)
    assert late[0].startswith(b"HTTP/1.1 503")


ASKED = {
    "chat": {"messages": CHAT["messages"]},
    "chat with tools": {"messages": CHAT["messages"], "tools": [{"type": "function", "function": {"name": "f"}}]},
    "completions": {"prompt": [5, 6, 7]},
}


@pytest.mark.parametrize("end", ["abort", "length"])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("what", ASKED)
def test_text_that_might_have_begun_a_stop_text_comes_with_the_end(
    tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch, end: str, stream: bool, what: str
):
    answer = "one two three"
    say(monkeypatch, tiny, answer)
    step, left = Batch.step, len(tiny.encode(answer))
    most = left if end == "length" else 100

    def step_until_written(batch: Batch) -> Updates:
        nonlocal left
        updates = step(batch)
        left -= len(updates)
        return updates if left else [*updates, *batch.end_all(None)]

    monkeypatch.setattr(Batch, "step", step_until_written)
    path = "/v1/completions" if what == "completions" else "/v1/chat/completions"
    with run_engine(tiny) as running:
        given = running.client.post(
            path, json={**ASKED[what], "max_tokens": most, "stop": "three four", "stream": stream}
        )
    parts = [line[6:] for line in given.text.split("\n\n") if line.startswith("data: {")] if stream else [given.text]
    choices = [json.loads(part)["choices"][0] for part in parts]
    told = [choice.get("delta") or choice.get("message") or choice for choice in choices]
    assert "".join(part.get("content") or part.get("text") or "" for part in told) == answer
    assert choices[-1]["finish_reason"] == end


def test_a_request_that_comes_while_the_loop_fails_gets_its_error_too(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    in_step, go_on = threading.Event(), threading.Event()
    generate, taken = Engine.generate, threading.Semaphore(0)

    def generate_and_tell(*given: Any) -> Generation:
        generation = generate(*given)
        taken.release()
        return generation

    monkeypatch.setattr(Engine, "generate", generate_and_tell)

    def failing(_batch: Batch) -> Updates:
        in_step.set()
        assert go_on.wait(60)
        raise RuntimeError("no more")

    monkeypatch.setattr(Batch, "step", failing)
    with run_engine(load_model(tiny_folder), exit_code=2) as running, ThreadPoolExecutor(2) as pool:
        first = pool.submit(running.client.post, "/v1/chat/completions", json=CHAT)
        assert in_step.wait(60)
        second = pool.submit(running.client.post, "/v1/chat/completions", json=CHAT)
        assert all(taken.acquire(timeout=60) for _ in range(2))
        go_on.set()
        for answer in (first, second):
            assert answer.result(60).status_code == 500
            # In the engine's own words: what the server cuts off at its end has none.
            assert answer.result(60).json()["error"]["message"].startswith("The engine's loop encountered an issue")


def test_more_answers_than_ever_fit_are_refused_for_good(tiny_folder: Path):
    with run_engine(load_model(tiny_folder), rows_max=2, waiting_max=1) as small:
        refused = small.client.post("/v1/chat/completions", json={**CHAT, "n": 4})
        assert (refused.status_code, refused.json()["error"]["message"]) == (
            400,
            "This request asks for 4 answers, and the engine takes 3 at once: ask for fewer (`n`, `prompt`).",
        )
        refused = small.client.post("/v1/chat/completions", json={**CHAT, "allowed_token_ids": []})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "allowed_token_ids")
