"""Architectures that `--model` takes, made on the spot: served and trained with the same numbers, one in 4 bits."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from transformers import GraniteConfig, GraniteForCausalLM

from backtalk_worker.model.load import LoadedModel, load_model
from backtalk_worker.model.quantization import Quantization
from backtalk_worker.model.template import problem_of_template
from backtalk_worker.training.domain import network as network_module
from backtalk_worker.training.domain.adapter import AdaptedNetwork, AdapterShape, adapted, adapter_config
from backtalk_worker.training.domain.frozen_states import score_answers
from backtalk_worker.training.domain.network import Layout, network_of
from backtalk_worker.training.domain.token_budget import TokenBudget
from backtalk_worker.training.outputs.base_model import BaseModel, load_base_model
from tests.engine.conftest import BASE, run_engine
from tests.model.made import MADE, WINDOW, make_model
from tests.model.quantised import dequantised

TOOL = {
    "type": "function",
    "function": {
        "name": "rain",
        "description": "Whether it rains.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "Rain in Rome?"},
    {
        "role": "assistant",
        "content": None,
        # As vLLM names them, and as templates read them under another name.
        "reasoning": "The tool knows.",
        # Arguments as JavaScript writes them.
        "tool_calls": [
            {"id": "abcdefgh1", "type": "function", "function": {"name": "rain", "arguments": '{"city":"Rome"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "abcdefgh1", "content": "no"},
]


@dataclass(frozen=True)
class MadeBase:
    """One that is made, and how its weights are held."""

    kind: str
    quantization: Quantization
    folder: Path

    def load(self) -> LoadedModel:
        return load_model(self.folder, quantization=self.quantization)


@pytest.fixture(scope="module", params=[*((kind, "none") for kind in MADE), ("qwen3", "nf4")], ids="-".join)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MadeBase:
    kind, quantization = request.param
    return MadeBase(kind, quantization, make_model(kind, tmp_path_factory.mktemp("made") / kind))


@pytest.fixture(scope="module")
def base(made: MadeBase) -> BaseModel:
    return load_base_model(made.folder, BASE, "cpu", "float32", quantization=made.quantization)


@contextmanager
def disturbed(base: BaseModel) -> Iterator[tuple[AdapterShape, AdaptedNetwork]]:
    """An adapter on all linear layers that changes every answer."""
    shape = AdapterShape(4, 8, base.target_modules)
    generator = torch.Generator().manual_seed(1)
    with adapted(base.network, shape, seed=0) as policy:
        start = policy.tensors()
        policy.set_tensors({n: t + 0.1 * torch.randn(t.shape, generator=generator) for n, t in start.items()})
        yield shape, policy


BUDGET = TokenBudget(2048)


def scores(network: network_module.ChunkedNetwork, prompt: list[int], answer: list[int]) -> list[float]:
    return score_answers(network, [prompt], [answer], [1.0], BUDGET, lambda *_: None)[0]


def test_engine_and_training_worker_give_the_same_logprobs(base: BaseModel, made: MadeBase, tmp_path: Path):
    with disturbed(base) as (shape, policy):
        save_file(policy.tensors(), tmp_path / "adapter_model.safetensors")
        (tmp_path / "adapter_config.json").write_bytes(adapter_config(shape, BASE))
        with run_engine(made.load(), prefill_alone=16, prefill_beside_answers=16) as running:
            path = {"lora_name": "v1", "lora_path": str(tmp_path)}
            running.client.post("/v1/load_lora_adapter", json=path).raise_for_status()
            answers = {
                name: running.client.post(
                    "/v1/chat/completions",
                    json={
                        **{"model": name, "messages": TALK, "tools": [TOOL], "max_tokens": 2 * WINDOW, "seed": 1},
                        **{"ignore_eos": True, "logprobs": True, "return_token_ids": True},
                    },
                ).json()
                for name in (BASE, "v1")
            }
        found: dict[str, tuple[list[float], list[float]]] = {}
        for name, body in answers.items():
            choice, prompt = body["choices"][0], body["prompt_token_ids"]
            assert len(prompt) > 2 * WINDOW
            given = [one["logprob"] for one in choice["logprobs"]["content"]]
            if name == BASE:
                with policy.network.without_adapter():
                    found[name] = given, scores(policy.network, prompt, choice["token_ids"])
            else:
                found[name] = given, scores(policy.network, prompt, choice["token_ids"])
        for given, scored in found.values():
            assert given == pytest.approx(scored, abs=1e-4)
        # What is merged answers as what is swapped in; into 4 bits it would be rounded.
        choice, prompt = answers["v1"]["choices"][0], answers["v1"]["prompt_token_ids"]
        with adapted(dequantised(made.load().network), shape, seed=0) as merged:
            merged.set_tensors(policy.tensors())
            plain = merged.network.model.merge_and_unload()
            assert found["v1"][0] == pytest.approx(scores(network_of(plain), prompt, choice["token_ids"]), abs=1e-4)
    assert found[BASE][0] != pytest.approx(found["v1"][0], abs=1e-2)


def test_samples_that_lie_end_to_end_see_themselves_alone(base: BaseModel):
    """Longer than a window, and as short as can be."""
    prompts, answers = [[5] * 40, [6], list(range(7, 40))], [[9, 8, 7], [4], [3, 2]]
    with disturbed(base) as (_, policy):
        padded, packed = (
            score_answers(
                replace(policy.network, layout=Layout(packs=packs)),
                prompts,
                answers,
                [1.0] * 3,
                BUDGET,
                lambda *_: None,
            )
            for packs in (False, True)
        )
    for expected, found in zip(padded, packed, strict=True):
        assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("arguments", [None, {"enable_thinking": False}])
def test_what_is_rendered_for_training_is_what_is_answered(made: MadeBase, arguments: dict[str, Any] | None):
    body: dict[str, Any] = {"model": BASE, "messages": TALK, "tools": [TOOL], "chat_template_kwargs": arguments}
    with run_engine(made.load()) as running:
        asked = {**body, "max_tokens": 1, "return_token_ids": True}
        answer = running.client.post("/v1/chat/completions", json=asked).json()
        rendered = running.client.post("/tokenize", json={**body, "add_generation_prompt": True}).json()
        text = running.client.post("/detokenize", json={"tokens": rendered["tokens"]}).json()["prompt"]
    assert rendered["tokens"] == answer["prompt_token_ids"]
    assert '{"city": "Rome"}' in text
    assert '"description": "Whether it rains."' in text
    if made.kind in ("qwen2", "qwen3"):
        assert "<think>\nThe tool knows.\n</think>" in text
        assert text.endswith("<think>\n\n</think>\n\n") == (arguments is not None)


def test_a_checkpointed_gradient_is_the_plain_one_on_every_layer(base: BaseModel, monkeypatch: pytest.MonkeyPatch):
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(0, base.loaded.vocabulary_size, (3 * WINDOW,), generator=generator).tolist()
    gradients: list[dict[str, torch.Tensor]] = []
    with disturbed(base) as (_, policy):
        for most in (10**12, 16):
            monkeypatch.setattr(network_module, "KEPT_BYTES_MAX", most)
            for parameter in policy.parameters.values():
                parameter.grad = None
            states = policy.network.answer_states([ids[:-8]], [ids[-8:]])
            policy.network.log_probabilities(states).amax(-1).sum().backward()
            gradients.append({n: p.grad.clone() for n, p in policy.parameters.items() if p.grad is not None})
        layers = {f"model.layers.{n}." for n in range(2)}
        assert gradients[0].keys() == policy.parameters.keys()
        assert all(any(layer in name for name in gradients[0]) for layer in layers)
    for name, plain in gradients[0].items():
        assert plain.norm() > 0, name
        assert (gradients[1][name] - plain).norm() <= 1e-6 * plain.norm(), name


def test_the_adapter_is_on_all_linear_layers_and_not_on_the_head(base: BaseModel):
    attention, mlp = ("k_proj", "o_proj", "q_proj", "v_proj"), ("down_proj", "gate_proj", "up_proj")
    assert base.target_modules == tuple(sorted((*attention, *mlp)))


def test_the_template_opens_an_answer(made: MadeBase):
    assert problem_of_template(made.load().tokenizer) == ""


def test_a_template_that_opens_no_answer_is_named(tmp_path: Path):
    tokenizer = load_model(make_model("qwen3", tmp_path)).tokenizer
    whole = str(tokenizer.chat_template)
    tokenizer.chat_template = whole[: whole.index("{%- if add_generation_prompt %}")]
    assert "no generation prompt" in problem_of_template(tokenizer)
    tokenizer.chat_template = "{{ raise_exception('no\nroles') }}"
    assert problem_of_template(tokenizer) == "its chat template cannot render a question and an answer (no)"


def test_a_model_that_caps_its_attention_is_refused(tmp_path: Path):
    make_model("gemma3", tmp_path)
    config = load_model(tmp_path).network.config
    config.attn_logit_softcapping = 50.0
    config.save_pretrained(tmp_path)
    with pytest.raises(OSError, match="caps its attention"):
        load_model(tmp_path)


def test_a_model_of_a_type_that_is_not_followed_is_refused(tmp_path: Path):
    make_model("llama", tmp_path)
    config = load_model(tmp_path).network.config.to_dict()
    sizes = {name: config[name] for name in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")}
    GraniteForCausalLM(GraniteConfig(**sizes, num_attention_heads=4, logits_scaling=8.0)).save_pretrained(tmp_path)
    with pytest.raises(OSError, match="is of the type granite, and what can be followed is gemma3_text, llama"):
        load_model(tmp_path)


@pytest.mark.parametrize("kind", ["longrope", "dynamic"])
def test_positions_that_depend_on_the_longest_prompt_are_refused(tmp_path: Path, kind: str):
    make_model("llama", tmp_path)
    config = load_model(tmp_path).network.config
    factors = {"short_factor": [1.0] * 8, "long_factor": [4.0] * 8} if kind == "longrope" else {"factor": 4.0}
    scaled = {"rope_type": kind, "rope_theta": 10_000.0, "original_max_position_embeddings": 512, **factors}
    config.rope_parameters = scaled
    config.save_pretrained(tmp_path)
    with pytest.raises(OSError, match="has positions that depend on the longest prompt"):
        load_model(tmp_path)
