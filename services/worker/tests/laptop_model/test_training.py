import copy
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from backtalk_worker.laptop_model.adapter import load_adapter, merge_adapter, save_adapter
from backtalk_worker.laptop_model.answers import read_answers
from backtalk_worker.laptop_model.attempts import Attempted, prompt_of
from backtalk_worker.laptop_model.packing import ATTENTION_NAME, Example, pack, register_attention
from backtalk_worker.laptop_model.rows import questions_to_train, told_rows
from backtalk_worker.laptop_model.sampling import Drawn
from backtalk_worker.laptop_model.train import Group, Recipe, adapted, backward, batch_of, groups_of, rate_at, train
from backtalk_worker.model.load import LoadedModel

RECIPE = Recipe(first_layer=1, untold_weight=2.0)
ANSWERS = read_answers()
MADE = [Attempted(row) for row in told_rows(questions_to_train(ANSWERS)[0], random.Random(1))]
"""Rows of a question whose targets are those of rules."""
[GROUP] = groups_of([MADE], ANSWERS, 1)


def units_of(model: LoadedModel, group: Group = GROUP) -> tuple[list[list[Example]], int, int]:
    """The examples row by row, how many ids they share, and how many tokens their answers have."""
    units, shared = batch_of(group, model, RECIPE)
    return units, shared, sum(len(one.answer) for unit in units for one in unit)


def examples_of(model: LoadedModel) -> tuple[list[Example], int]:
    units, shared, _ = units_of(model)
    return [one for unit in units for one in unit], shared


def drawn(model: LoadedModel, text: str) -> Drawn:
    """As if the model had answered so with the probability that it has."""
    prompt, ids = prompt_of(model, MADE[0].row), [*model.encode(text), model.end_ids[0]]
    with torch.no_grad():
        logits = model.network(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
    return Drawn(ids, float(logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None]).sum()), text, ended=True)


def packed_logits(network: Any, examples: list[Example], shared: int) -> torch.Tensor:
    packed = pack(examples, shared)
    register_attention()
    network.set_attn_implementation(ATTENTION_NAME)
    states = network.model(input_ids=packed.ids, position_ids=packed.positions, use_cache=False, packed=packed)
    return network.lm_head(states.last_hidden_state[0, packed.predicting])


@torch.no_grad()
def test_examples_laid_end_to_end_give_what_each_gives_alone(tiny_model: LoadedModel):
    examples, shared = examples_of(tiny_model)
    alone = [
        tiny_model.network(torch.tensor([[*one.prompt, *one.answer]])).logits[0, len(one.prompt) - 1 : -1]
        for one in examples
    ]
    assert shared > 20
    together = packed_logits(tiny_model.network, examples, shared)
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-4, rtol=1e-4)


def test_training_lowers_the_loss_of_told_rows_and_starts_from_the_plain_model(tiny_model: LoadedModel):
    network = adapted(tiny_model, RECIPE)
    units, shared, tokens = units_of(tiny_model)
    weights = [value for value in network.parameters() if value.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=1e-2)
    losses = []
    for _ in range(4):
        losses.append(backward(network, units, shared, tokens, RECIPE))
        optimiser.step()
        optimiser.zero_grad()
    assert losses[0]["untold"] == pytest.approx(0, abs=1e-5)
    assert losses[-1]["told"] < losses[0]["told"] - 0.1
    assert losses[-1]["untold"] > 0


def test_of_two_answers_the_preferred_one_gains_on_the_other(tiny_model: LoadedModel):
    good, bad = (drawn(tiny_model, text) for text in ("Salt takes it off.", "Water is wet."))
    network = adapted(tiny_model, RECIPE)
    group = Group([Attempted(MADE[0].row, good, bad)], GROUP.untold)
    units, shared, tokens = units_of(tiny_model, group)
    recipe = replace(RECIPE, preferred_weight=1000.0)
    optimiser = torch.optim.AdamW([value for value in network.parameters() if value.requires_grad], lr=1e-3)
    margins = []
    for _ in range(4):
        margins.append(backward(network, units, shared, tokens, recipe)["margin"])
        optimiser.step()
        optimiser.zero_grad()
    assert [len(unit) for unit in units] == [2, *[1] * len(GROUP.untold)]
    assert margins[0] == pytest.approx(0, abs=0.3)
    assert margins[-1] > 1


def test_what_no_attempt_did_is_learned_from_what_rules_made(tiny_model: LoadedModel):
    bad = drawn(tiny_model, "Water is wet.")
    (made,), _ = batch_of(Group([Attempted(MADE[0].row, None, bad)], []), tiny_model, RECIPE)
    assert [tiny_model.decode(one.answer[:-1]) for one in made] == [MADE[0].row.answer]


def test_the_parts_of_two_processes_add_up_to_the_gradient_of_one(tiny_model: LoadedModel):
    network = adapted(tiny_model, RECIPE)
    units, shared, tokens = units_of(tiny_model)
    weights = [value for value in network.parameters() if value.requires_grad]

    def gradient(parts: list[list[list[Example]]]) -> torch.Tensor:
        for part in parts:
            backward(network, part, shared, tokens, RECIPE)
        joined = torch.cat([value.grad.flatten() for value in weights if value.grad is not None])
        network.zero_grad()
        return joined

    whole, halves = gradient([units]), gradient([units[0::2], units[1::2]])
    assert torch.cosine_similarity(whole, halves, dim=0) > 0.999


@torch.no_grad()
def test_a_merged_adapter_answers_as_the_trained_one(tiny_model: LoadedModel, tmp_path: Path):
    file = tmp_path / "adapter.safetensors"
    plain = copy.deepcopy(tiny_model.network)
    examples, shared = examples_of(tiny_model)
    before = packed_logits(plain, examples, shared)
    with torch.enable_grad():
        train(tiny_model, [GROUP] * 2, Recipe(first_layer=1, learning_rate=1e-2, rise=1, fall=1), file, lambda _: None)
    trained = packed_logits(tiny_model.network, examples, shared)
    assert merge_adapter(plain, file) == 14
    merged = packed_logits(plain, examples, shared)
    assert (trained - before).abs().max() > 0.1
    torch.testing.assert_close(merged, trained, atol=0.02, rtol=0.02)


def test_an_adapter_that_does_not_fit_is_refused_by_layer(tiny_model: LoadedModel, tmp_path: Path):
    file = tmp_path / "adapter.safetensors"
    save_adapter(adapted(tiny_model, RECIPE), file)
    with pytest.raises(ValueError, match=r"does not fit the model: layer model\.layers\.1\.mlp\.down_proj"):
        merge_adapter(torch.nn.Linear(2, 2), file)


@torch.no_grad()
def test_training_goes_on_from_a_saved_adapter(tiny_model: LoadedModel, tmp_path: Path):
    file = tmp_path / "adapter.safetensors"
    plain = copy.deepcopy(tiny_model)
    examples, shared = examples_of(tiny_model)
    with torch.enable_grad():
        train(tiny_model, [GROUP] * 2, Recipe(first_layer=1, learning_rate=1e-2, rise=1, fall=1), file, lambda _: None)
        follower = Recipe(first_layer=1, learning_rate=0.0, start=file)
        train(plain, [GROUP], follower, tmp_path / "next.safetensors", lambda _: None)
    trained, followed = (packed_logits(one.network, examples, shared) for one in (tiny_model, plain))
    torch.testing.assert_close(followed, trained, atol=0.02, rtol=0.02)


def test_an_adapter_of_other_layers_is_not_gone_on_from(tiny_model: LoadedModel, tmp_path: Path):
    file = tmp_path / "adapter.safetensors"
    save_adapter(adapted(copy.deepcopy(tiny_model), Recipe(first_layer=2)), file)
    with pytest.raises(ValueError, match="other layers than the adapter that is trained"):
        load_adapter(adapted(tiny_model, RECIPE), file)


def test_a_longer_run_begins_like_a_shorter_one():
    short, long = ([rate_at(step, steps, Recipe()) for step in range(20)] for steps in (400, 900))
    assert short == long
    assert rate_at(399, 400, Recipe()) < rate_at(350, 400, Recipe()) < rate_at(70, 400, Recipe())
