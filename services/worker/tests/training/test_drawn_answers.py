"""Answers that the worker gives: whose they are, how many, and what a step measures of them."""

from dataclasses import replace

import pytest
import torch
from tiny_policy import RECIPE, changed, disturb, items_of, logits_of, silent, tiny_model, tiny_shape

from backtalk_worker.training.domain.adapter import adapted
from backtalk_worker.training.domain.drawn_answers import Drawing, drawn_items
from backtalk_worker.training.domain.optimizer import make_optimizer
from backtalk_worker.training.domain.sampling import sample_answers
from backtalk_worker.training.domain.step import take_step
from backtalk_worker.training.domain.teacher import Teacher
from backtalk_worker.training.domain.token_budget import TokenBudget

LENGTHS = ((5, 4), (9, 2), (3, 8), (6, 6))
END = 2
HYBRID = replace(RECIPE, opd_form="hybrid", max_answer_tokens=9)


@pytest.fixture
def items():
    return items_of(tiny_model(), LENGTHS)


@pytest.fixture
def policy():
    model = tiny_model()
    with adapted(model, tiny_shape(model), seed=1) as one:
        # So far from the base that hardly any answer of the two is alike.
        disturb(one, scale=2.0)
        yield one


def told(policy, items, recipe=HYBRID, context=64, seed=1, tokens=10_000):
    return answered(policy, items, recipe, context, seed, tokens)[len(items) :]


def answered(policy, items, recipe=HYBRID, context=64, seed=1, tokens=10_000):
    drawing = Drawing(Teacher(policy, recipe.teacher), recipe, context, [END], seed, TokenBudget(tokens), lambda: None)
    return drawn_items(drawing, items)


def test_half_of_the_answers_with_a_teacher_get_one_of_the_teacher(policy, items):
    untaught = replace(items[0], teacher_prompt=())
    found = told(policy, [untaught, *items[1:]])
    assert len(found) == 2
    by_turn = {item.sample.turn: item for item in items[1:]}
    for item in found:
        own = by_turn[item.sample.turn].sample
        assert (item.sample.prompt_ids, item.sample.temperature) == (own.prompt_ids, own.temperature)
        assert item.teacher_prompt == own.teacher_prompt_ids
        assert (item.sample.told, item.sample.advantage) == (True, 0.0)
        assert 1 <= len(item.sample.answer_ids) <= 9
        assert END not in item.sample.answer_ids[:-1]
    drawn = {tuple(item.sample.turn for item in told(policy, items, seed=seed)) for seed in range(8)}
    assert len(drawn) > 1


@pytest.mark.parametrize(("share", "count"), [(0.2, 1), (0.5, 2), (0.6, 3), (1.0, 4)])
def test_the_recipe_says_for_how_many_of_the_answers_with_a_teacher(policy, items, share, count):
    assert len(told(policy, items, replace(HYBRID, told_share=share))) == count


def test_they_are_what_the_base_says_after_the_hinted_prompt_and_not_what_the_policy_says(policy, items):
    # In the order in which they go through the network.
    found = sorted(told(policy, items), key=lambda item: len(item.teacher_prompt))
    prompts = [item.teacher_prompt for item in found]
    temperatures = [item.sample.temperature for item in found]
    base = tiny_model()
    with adapted(base, tiny_shape(base), seed=1) as untrained:
        alike = [
            sample_answers(network, prompts, temperatures, [END], 9, torch.Generator().manual_seed(1), lambda: None)
            for network in (untrained.network, policy.network)
        ]
    answers = [list(item.sample.answer_ids) for item in found]
    assert answers == alike[0]
    assert answers != alike[1]


def test_they_are_what_the_policy_says_itself_where_it_is_the_teacher(policy, items):
    def answers(teacher):
        return [item.sample.answer_ids for item in told(policy, items, replace(HYBRID, teacher=teacher))]

    assert answers("current") != answers("base")
    with policy.network.without_adapter():
        assert answers("current") == answers("base")


def test_they_are_drawn_at_the_temperature_of_the_turn(policy, items):
    cold = [changed(item, temperature=1e-4) for item in items]
    for item in told(policy, cold):
        ids = [*item.teacher_prompt, *item.sample.answer_ids]
        likeliest = logits_of(tiny_model(), ids).argmax(-1)
        assert likeliest[len(item.teacher_prompt) - 1 : -1].tolist() == list(item.sample.answer_ids)


def test_the_same_batch_gives_the_same_answers_however_many_fit_at_once(policy, items):
    whole = told(policy, items)
    assert told(policy, items) == whole
    asked = []

    class Short(TokenBudget):
        def spend(self, work):
            asked.append(work(self.tokens))
            return work(self.tokens)

    drawn_items(Drawing(Teacher(policy), HYBRID, 64, [END], 1, Short(10_000), lambda: None), items)
    # The policy is asked for none.
    assert asked == [[], [list(one.sample.answer_ids) for one in whole]]
    assert len(told(policy, items, tokens=1)) == 2


def test_other_forms_and_prompts_that_leave_no_room_get_none(policy, items):
    assert told(policy, items, replace(HYBRID, opd_form="full")) == []
    longest = max(len(item.teacher_prompt) for item in items)
    assert told(policy, items, context=3 + 9) == []
    assert all(len(item.teacher_prompt) < longest for item in told(policy, items, context=longest + 8))
    most = max(len(item.sample.prompt_ids) for item in items) + HYBRID.max_answer_tokens
    kept = told(policy, items, replace(HYBRID, max_tokens=most - 1))
    assert {len(item.sample.prompt_ids) for item in kept} < {len(item.sample.prompt_ids) for item in items}


def test_a_step_learns_from_them_and_measures_the_policys_own_answers_alone(items):
    # To the policy, at such a temperature, they are absurd.
    far = [
        changed(item, told=True, advantage=0.0, temperature=0.02, logprobs=(0.0,) * len(item.sample.answer_ids))
        for item in items[:2]
    ]

    recipe = replace(HYBRID, step_bound=0.0, learning_rate=1e-9)

    def step(given):
        model = tiny_model()
        with adapted(model, tiny_shape(model), 1) as one:
            disturb(one)
            start = one.tensors()
            outcome = take_step(Teacher(one, recipe.teacher), make_optimizer(one, recipe, {}), given, recipe, 1, silent)
            moved = max(float((value - start[name]).abs().max()) for name, value in one.tensors().items())
            return outcome, moved

    own, _ = step(items)
    both, _ = step([*items, *far])
    assert both.measurements["answers_told"] == 2
    assert [x.turn for x in both.samples] == [x.turn for x in own.samples]
    same = ("v_mean", "ess", "entropy", "tokens", "samples_trained", "divergence", "kl_base", "logprob_difference")
    for name in same:
        assert both.measurements[name] == pytest.approx(own.measurements[name], rel=1e-9), name
    assert both.measurements["loss_opd"] != own.measurements["loss_opd"]
    assert both.measurements["loss_binary"] == pytest.approx(own.measurements["loss_binary"] * 4 / 6, rel=1e-9)
    alone, moved = step(far)
    assert alone.samples == []
    assert moved > 0
    recipe = replace(recipe, learning_rate=1e-2)
    free, _ = step(far)
    recipe = replace(recipe, step_bound=free.measurements["kl_step"] / 20)
    bounded, _ = step(far)
    assert 0 < bounded.measurements["kl_step"] <= recipe.step_bound


def test_a_turn_with_lessons_shown_gets_an_answer_of_the_policy_to_the_plain_prompt(policy, items):
    shown = [changed(items[0], shown=True), items[1]]
    found = answered(policy, shown, replace(HYBRID, opd_form="full"))
    generator = torch.Generator().manual_seed(1)
    own = items[0].sample
    said = sample_answers(policy.network, [own.prompt_ids], [own.temperature], [END], 9, generator, lambda: None)[0]
    assert found == [changed(shown[0], answer_ids=tuple(said), logprobs=(0.0,) * len(said), advantage=0.0), items[1]]
    # Neither the shown answer itself nor the base's.
    assert tuple(said) != own.answer_ids
    with policy.network.without_adapter():
        generator.manual_seed(1)
        base = sample_answers(policy.network, [own.prompt_ids], [own.temperature], [END], 9, generator, lambda: None)
    assert base[0] != said


def test_its_own_answer_is_one_of_the_told_where_told_answers_are_taken(policy, items):
    shown = [changed(items[0], shown=True), *items[1:]]
    extra = told(policy, shown)
    assert (extra[0].sample.turn, extra[0].sample.told) == ("turn_0", True)
    assert extra[0].sample.answer_ids == items[0].sample.answer_ids
    assert len(extra) == 2
    # More than half of them: then no other is drawn.
    assert [item.sample.answer_ids for item in told(policy, [changed(item, shown=True) for item in items])] == [
        item.sample.answer_ids for item in items
    ]
    # A shown answer that its person did not like comes without its ids: the teacher may be asked for another.
    without = [changed(item, shown=True, answer_ids=(), logprobs=()) for item in items]
    assert len(told(policy, without)) == 2
    assert all(item.sample.answer_ids for item in answered(policy, without))


def test_a_step_takes_the_drawn_answer_for_one_of_the_policy(policy, items):
    recipe = replace(HYBRID, opd_form="sampled", step_bound=0.0)
    given = answered(policy, [changed(item, shown=True) for item in items], recipe)
    outcome = take_step(Teacher(policy, recipe.teacher), make_optimizer(policy, recipe, {}), given, recipe, 1, silent)
    assert [(one.dropped, one.staleness, one.answer_replaced) for one in outcome.samples] == [("", 0.0, True)] * 4
    assert outcome.measurements["v_mean"] == 1
    assert outcome.measurements["loss_opd"] != 0
    assert outcome.measurements["loss_binary"] == 0


def outdated(item):
    """Its sampler gave the answer for certain; the policy gives it once in a million times or less."""
    return changed(item, logprobs=(0.0,) * len(item.sample.answer_ids), temperature=0.05)


ANEW = replace(HYBRID, opd_form="full", off_policy="answer_anew")


def test_an_answer_that_the_policy_hardly_gives_any_more_is_given_anew(policy, items):
    given = [outdated(items[0]), *items[1:]]
    found = answered(policy, given, ANEW)
    own = given[0].sample
    generator = torch.Generator().manual_seed(1)
    said = sample_answers(policy.network, [own.prompt_ids], [own.temperature], [END], 9, generator, lambda: None)[0]
    assert tuple(said) != own.answer_ids
    assert found[0] == changed(given[0], answer_ids=tuple(said), logprobs=(0.0,) * len(said), advantage=0.0, anew=True)


def test_answers_that_the_policy_still_gives_stay(items):
    model = tiny_model()
    with adapted(model, tiny_shape(model), seed=1) as one:
        given = [outdated(items[0]), *items[1:]]
        found = answered(one, given, ANEW)
        assert [item.sample.anew for item in found] == [True, False, False, False]
        assert found[1:] == given[1:]
        assert answered(one, given, replace(ANEW, off_policy="drop")) == given
        untaught = [replace(given[0], teacher_prompt=()), *given[1:]]
        assert answered(one, untaught, ANEW) == untaught
        # Prompt 5, with hints 8, and 9 for an answer.
        assert answered(one, given, ANEW, context=16) == given
        assert answered(one, given, replace(ANEW, max_tokens=13)) == given
        assert answered(one, given, replace(ANEW, max_tokens=14), context=17) != given


def test_a_turn_with_lessons_shown_is_not_looked_at_twice(policy, items):
    shown = changed(outdated(items[0]), shown=True, answer_ids=(), logprobs=())
    found = answered(policy, [shown], ANEW)[0].sample
    assert (found.anew, bool(found.answer_ids)) == (False, True)


def test_a_step_trains_on_the_answer_given_anew(items):
    def step(off_policy):
        model = tiny_model()
        recipe = replace(ANEW, off_policy=off_policy, step_bound=0.0)
        with adapted(model, tiny_shape(model), 1) as one:
            given = answered(one, [outdated(items[0]), items[1]], recipe)
            return take_step(Teacher(one, recipe.teacher), make_optimizer(one, recipe, {}), given, recipe, 1, silent)

    anew, dropped = step("answer_anew"), step("drop")
    assert [one.dropped for one in dropped.samples] == ["ratio_too_small", ""]
    first = anew.samples[0]
    assert (first.dropped, first.staleness) == ("", 0.0)
    assert first.divergence > 0
    assert [one.answer_replaced for one in anew.samples] == [True, False]
    assert [one.answer_replaced for one in dropped.samples] == [False, False]
    assert (anew.measurements["answers_anew"], dropped.measurements["answers_anew"]) == (1, 0)
    assert anew.measurements["samples_trained"] == dropped.measurements["samples_trained"] + 1
