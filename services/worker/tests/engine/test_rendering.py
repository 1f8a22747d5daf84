"""What the engine renders for training is what it answers: history of tools, bare tools, a template's own arguments."""

import copy
import dataclasses
from typing import Any

import pytest

from backtalk_worker.model.load import LoadedModel
from tests.engine.conftest import BASE, run_engine

TOOL_TALK: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "Rain in Rome?"}]},
    # Arguments as JavaScript writes them.
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "rain", "arguments": '{"city":"Rome","days":[1,2]}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "no"},
    {"role": "user", "content": "And tomorrow?"},
]
BARE_TOOL = {"type": "function", "function": {"name": "rain"}}
TEMPLATE = (
    "{% for tool in tools or [] %}<tool>{{ tool | tojson }}</tool>{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for call in m.tool_calls or [] %}{{ call.function.arguments | tojson }}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}"
)


@pytest.mark.parametrize("arguments", [None, {"enable_thinking": False}, {"enable_thinking": True}])
@pytest.mark.parametrize("tools", [None, [BARE_TOOL]])
def test_tokenize_renders_a_conversation_exactly_as_it_is_answered(
    tiny: LoadedModel, tools: list[Any] | None, arguments: dict[str, Any] | None
):
    tokenizer = copy.deepcopy(tiny.tokenizer)
    tokenizer.chat_template = TEMPLATE
    body: dict[str, Any] = {"model": BASE, "messages": TOOL_TALK, "tools": tools, "chat_template_kwargs": arguments}
    with run_engine(dataclasses.replace(tiny, tokenizer=tokenizer)) as running:
        answer = running.client.post(
            "/v1/chat/completions", json={**body, "max_tokens": 1, "return_token_ids": True}
        ).json()
        uncalled = running.client.post(
            "/v1/chat/completions", json={**body, "max_tokens": 1, "return_token_ids": True, "tool_choice": "none"}
        ).json()
        rendered = running.client.post("/tokenize", json={**body, "add_generation_prompt": True}).json()
        text = running.client.post("/detokenize", json={"tokens": rendered["tokens"]}).json()["prompt"]
        refused = running.client.post("/tokenize", json={**body, "chat_template_kwargs": {"chat_template": "x"}})
    assert rendered["tokens"] == answer["prompt_token_ids"] == uncalled["prompt_token_ids"]
    assert text.endswith("<think></think>") == (arguments == {"enable_thinking": False})
    assert ("<tool>" in text) == (tools is not None)
    assert refused.status_code == 400


def test_a_token_without_an_embedding_is_refused_and_the_engine_lives_on(tiny: LoadedModel):
    tokenizer = copy.deepcopy(tiny.tokenizer)
    tokenizer.add_tokens(["<image_soft_token>"])
    asked = [{"role": "user", "content": "hi <image_soft_token>"}]
    with run_engine(dataclasses.replace(tiny, tokenizer=tokenizer)) as running:
        chat = running.client.post("/v1/chat/completions", json={"model": BASE, "messages": asked, "max_tokens": 2})
        text = running.client.post(
            "/v1/completions", json={"model": BASE, "prompt": "<image_soft_token>", "max_tokens": 2}
        )
        other = running.client.post("/v1/completions", json={"model": BASE, "prompt": "hi", "max_tokens": 2})
        health = running.client.get("/health")
    assert [one.status_code for one in (chat, text, other, health)] == [400, 400, 200, 200]
    assert "out of vocabulary" in chat.text
