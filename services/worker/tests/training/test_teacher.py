"""Who teaches: the policy's average and another model, in the loss, in told answers, and that the policy comes back."""

from dataclasses import replace

import pytest
import torch
from test_drawn_answers import END, HYBRID
from test_gradient_pass import LENGTHS, run
from tiny_policy import RECIPE, disturb, items_of, silent, tiny_model, tiny_shape
from written_out import written_out

from backtalk_worker.training.domain.adapter import adapted
from backtalk_worker.training.domain.drawn_answers import Drawing, drawn_items
from backtalk_worker.training.domain.network import network_of
from backtalk_worker.training.domain.optimizer import make_optimizer
from backtalk_worker.training.domain.step import take_step
from backtalk_worker.training.domain.teacher import Teacher, moved_average
from backtalk_worker.training.domain.token_budget import TokenBudget

FORMS = [
    replace(RECIPE, opd_form="full", divergence="jeffreys"),
    replace(RECIPE, method="opd", opd_form="sampled", opd_advantage_clip=0.5),
    replace(RECIPE, method="opd", opd_form="topk", opd_advantage_clip=0.5),
]


@pytest.fixture
def items():
    return items_of(tiny_model(), LENGTHS)


@pytest.fixture
def policy():
    model = tiny_model()
    with adapted(model, tiny_shape(model), seed=1) as one:
        disturb(one)
        yield one


@pytest.fixture
def averaged(policy):
    """A policy that stands where the average does, in a model of its own."""
    model = tiny_model()
    with adapted(model, tiny_shape(model), seed=1) as one:
        disturb(one, seed=9, scale=0.3)
        yield one


def of_average(policy, averaged):
    return Teacher(policy, "ema", averaged.tensors()), averaged.network.model


def of_another(policy, _averaged):
    other = tiny_model(seed=4, width=24)
    return Teacher(policy, "other", other=network_of(other)), other


@pytest.mark.parametrize("of", [of_average, of_another])
@pytest.mark.parametrize("recipe", FORMS, ids=lambda recipe: recipe.opd_form)
def test_value_and_gradient_equal_the_objective_with_that_teacher_written_out(policy, averaged, items, recipe, of):
    who, model = of(policy, averaged)
    recipe = replace(recipe, teacher=who.whose)
    sums, found, _ = run(policy, items, recipe, who=who)
    expected_loss = written_out(policy, items, recipe, model)
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(expected_loss, list(policy.parameters.values()))])
    assert float(expected.abs().max()) > 1e-4
    assert abs(sums.loss - float(expected_loss.detach())) < 1e-5
    assert float((found - expected).abs().max() / expected.abs().max()) < 1e-5


@pytest.mark.parametrize("recipe", FORMS, ids=lambda recipe: recipe.opd_form)
def test_another_model_with_the_weights_of_the_base_teaches_what_the_base_does(policy, items, recipe):
    copy = Teacher(policy, "other", other=network_of(tiny_model()))
    assert torch.equal(run(policy, items, recipe, who=copy)[1], run(policy, items, recipe)[1])


@pytest.mark.parametrize("of", [of_average, of_another])
def test_told_answers_are_what_that_teacher_says(policy, averaged, items, of):
    who, model = of(policy, averaged)
    cold = [replace(item, sample=replace(item.sample, temperature=1e-4)) for item in items]
    drawing = Drawing(who, replace(HYBRID, teacher=who.whose), 64, [END], 1, TokenBudget(10_000), lambda: None)
    told = drawn_items(drawing, cold)[len(cold) :]
    assert told
    for item in told:
        ids = [*item.teacher_prompt, *item.sample.answer_ids]
        likeliest = model(input_ids=torch.tensor([ids])).logits[0].argmax(-1)
        assert likeliest[len(item.teacher_prompt) - 1 : -1].tolist() == list(item.sample.answer_ids)


@pytest.mark.parametrize("fails", [False, True])
def test_the_policy_is_what_it_was_after_its_average_has_taught(policy, averaged, fails):
    before = policy.tensors()
    who = of_average(policy, averaged)[0]
    with pytest.raises(ZeroDivisionError) if fails else who.present(), who.present() as network:
        assert network is policy.network
        assert all(torch.equal(value, averaged.tensors()[name]) for name, value in policy.tensors().items())
        if fails:
            raise ZeroDivisionError
    assert all(torch.equal(value, before[name]) for name, value in policy.tensors().items())


@pytest.mark.parametrize("of", [of_average, of_another])
def test_a_whole_step_moves_the_policy_and_nothing_of_its_teacher(policy, averaged, items, of):
    who, model = of(policy, averaged)
    recipe = replace(RECIPE, teacher=who.whose, optimizer_steps=2, opd_form="topk")
    before, taught = policy.tensors(), {name: value.clone() for name, value in model.named_parameters()}
    average = {name: value.clone() for name, value in who.average.items()}
    outcome = take_step(who, make_optimizer(policy, recipe, {}), items, recipe, 1, silent)
    assert outcome.measurements["gradient_norm"] > 0
    assert any(not torch.equal(value, before[name]) for name, value in policy.tensors().items())
    assert all(torch.equal(value, taught[name]) for name, value in model.named_parameters())
    assert all(torch.equal(value, average[name]) for name, value in who.average.items())


def test_an_average_keeps_so_much_of_the_one_before(policy, averaged):
    found = moved_average(averaged.tensors(), policy.tensors(), 0.75)
    for name, value in policy.tensors().items():
        assert torch.allclose(found[name], (3 * averaged.tensors()[name] + value) / 4, atol=1e-12)
