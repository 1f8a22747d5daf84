"""What the official Python client of OpenAI's API finds at a gateway with a stand-in engine behind it.

In: the gateway's base URL and the engine's. Out: one JSON line for each check: its name, and why it failed if it did.
"""

import json
import sys
import time
import urllib.request
from collections.abc import Callable

import openai

BASE_URL, ENGINE = sys.argv[1], sys.argv[2]
HELLO = [{"role": "user", "content": "Hello there"}]
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}

client = openai.OpenAI(base_url=BASE_URL, api_key="none needed", max_retries=0, timeout=20)


def set_engine(**settings: object) -> None:
    body = json.dumps(settings).encode()
    urllib.request.urlopen(urllib.request.Request(f"{ENGINE}/fake/settings", data=body, method="POST"), timeout=5)


def counts() -> dict[str, object]:
    with urllib.request.urlopen(f"{ENGINE}/fake/counts", timeout=5) as response:
        return json.load(response)


def whole() -> None:
    answer = client.chat.completions.create(model="backtalk", messages=HELLO, max_tokens=6)
    assert answer.id.startswith("turn_"), answer.id
    assert answer.model == "backtalk", answer.model
    assert answer.choices[0].finish_reason == "length", answer.choices[0]
    assert answer.usage is not None and answer.usage.completion_tokens == 6, answer.usage


def streamed() -> None:
    pieces = []
    finish = None
    for chunk in client.chat.completions.create(model="backtalk", messages=HELLO, stream=True):
        assert chunk.id.startswith("turn_"), chunk.id
        assert chunk.usage is None, chunk.usage
        pieces.append(chunk.choices[0].delta.content or "")
        finish = chunk.choices[0].finish_reason or finish
    assert finish == "stop", finish
    assert len("".join(pieces).split()) > 5, pieces


def usage_chunk() -> None:
    options = {"include_usage": True}
    chunks = list(client.chat.completions.create(model="backtalk", messages=HELLO, stream=True, stream_options=options))
    assert chunks[-1].choices == [], chunks[-1]
    assert chunks[-1].usage is not None and chunks[-1].usage.completion_tokens > 0, chunks[-1]


def tools_whole() -> None:
    answer = client.chat.completions.create(model="backtalk", messages=HELLO, tools=[WEATHER], tool_choice="required")
    [call] = answer.choices[0].message.tool_calls or []
    assert call.function.name == "get_weather", call
    assert json.loads(call.function.arguments) == {"city": "Paris"}, call
    said = {"role": "assistant", "tool_calls": [call.model_dump()]}
    result = {"role": "tool", "tool_call_id": call.id, "content": "Sunny."}
    after = client.chat.completions.create(model="backtalk", messages=[*HELLO, said, result], tools=[WEATHER])
    assert after.choices[0].message.content, after


def tools_streamed() -> None:
    name, arguments = "", ""
    request = {"model": "backtalk", "messages": HELLO, "tools": [WEATHER], "tool_choice": "required", "stream": True}
    for chunk in client.chat.completions.create(**request):
        for call in chunk.choices[0].delta.tool_calls or []:
            name += call.function.name or ""
            arguments += call.function.arguments or ""
    assert (name, json.loads(arguments)) == ("get_weather", {"city": "Paris"}), (name, arguments)


def abort() -> None:
    set_engine(tokenMs=20, answerTokens=2000)
    try:
        before = counts()["cancelled"]
        with client.chat.completions.create(model="backtalk", messages=HELLO, stream=True) as stream:
            next(iter(stream))
        # An answer that is still being cut could end whole if the engine were made fast now.
        deadline = time.monotonic() + 60
        while counts()["cancelled"] == before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert counts()["cancelled"] == before + 1, counts()
        set_engine(tokenMs=0, answerTokens=12)
        client.chat.completions.create(model="backtalk", messages=HELLO)
    finally:
        set_engine(tokenMs=0, answerTokens=12)


def refused(kind: type[openai.APIStatusError], code: str, **request: object) -> None:
    try:
        client.chat.completions.create(**{"model": "backtalk", "messages": HELLO, **request})
    except kind as error:
        assert error.code == code, (error.code, code)
        assert type(error) is kind, type(error)
        return
    raise AssertionError(f"{kind.__name__} was not raised")


def unknown_model() -> None:
    refused(openai.NotFoundError, "model_not_found", model="gpt-4")


def long_prompt() -> None:
    refused(openai.BadRequestError, "context_length_exceeded", messages=[{"role": "user", "content": "word " * 20_000}])


def busy_engine() -> None:
    set_engine(faults={"busy": True})
    try:
        refused(openai.RateLimitError, "server_overloaded")
    finally:
        set_engine(faults={})


def models() -> None:
    ids = [model.id for model in client.models.list()]
    assert ids[:2] == ["backtalk", "backtalk-v0"], ids
    assert client.models.retrieve("backtalk").id == "backtalk"


CHECKS: tuple[Callable[[], None], ...] = (
    whole,
    streamed,
    usage_chunk,
    tools_whole,
    tools_streamed,
    abort,
    unknown_model,
    long_prompt,
    busy_engine,
    models,
)

for check in CHECKS:
    try:
        check()
        failure = ""
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    print(json.dumps({"check": check.__name__, "failure": failure}), flush=True)
