"""Of several hints, the one under which the likeliest tokens of teacher and policy agree most."""

from dataclasses import replace

import pytest
import torch
from tiny_policy import RECIPE, disturb, items_of, logits_of, tiny_model, tiny_shape

from backtalk_worker.training.domain.adapter import adapted
from backtalk_worker.training.domain.batch import prepare_batch
from backtalk_worker.training.domain.hint_choice import overlap, with_chosen_hints
from backtalk_worker.training.domain.network import network_of
from backtalk_worker.training.domain.teacher import Teacher
from backtalk_worker.training.domain.token_budget import TokenBudget

LENGTHS = ((5, 4), (9, 2), (3, 8), (6, 6))
LIKELIEST = 4


@pytest.fixture
def policy():
    model = tiny_model()
    with adapted(model, tiny_shape(model), seed=1) as one:
        disturb(one, scale=0.3)
        yield one


def several(items, others=5, seed=11):
    """Each with other hints before its own prompt's end."""
    generator = torch.Generator().manual_seed(seed)

    def with_others(item):
        prompts = tuple(
            (*item.sample.prompt_ids, *torch.randint(0, 13, (3 + n,), generator=generator).tolist())
            for n in range(others)
        )
        return replace(item, sample=replace(item.sample, other_teacher_prompts=prompts))

    return [with_others(item) for item in items]


def chosen(who, items, likeliest=LIKELIEST, context=64, tokens=10_000):
    return with_chosen_hints(who, items, likeliest, context, TokenBudget(tokens), lambda: None)


def share(policy_model, teacher_model, item, prompt):
    """Written out: sets of token ids, place by place."""
    answer = item.sample.answer_ids
    shares = []
    for place in range(len(answer)):
        before = answer[:place]
        own = logits_of(policy_model, [*item.sample.prompt_ids, *before])[-1].topk(LIKELIEST).indices.tolist()
        taught = logits_of(teacher_model, [*prompt, *before])[-1].topk(LIKELIEST).indices.tolist()
        shares.append(len(set(own) & set(taught)) / LIKELIEST)
    return sum(shares) / len(shares)


@pytest.mark.parametrize("whose", ["base", "current", "other"])
@pytest.mark.parametrize("tokens", [10_000, 20])
def test_the_hint_with_the_largest_overlap_is_taken_whoever_teaches(policy, whose, tokens):
    items = several(items_of(tiny_model(), LENGTHS))
    other = tiny_model(seed=4, width=24)
    who = Teacher(policy, whose, other=network_of(other) if whose == "other" else None)
    teacher_model = {"base": tiny_model(), "current": policy.network.model, "other": other}[whose]
    found = chosen(who, items, tokens=tokens)
    for before, item in zip(items, found, strict=True):
        prompts = (before.teacher_prompt, *before.sample.other_teacher_prompts)
        shares = [share(policy.network.model, teacher_model, before, prompt) for prompt in prompts]
        assert item.hint_chosen == shares.index(max(shares))
        assert item.teacher_prompt == prompts[item.hint_chosen]
        assert item.sample == before.sample
    assert len({item.hint_chosen for item in found}) > 1


def test_of_hints_that_agree_alike_the_first_is_taken(policy):
    [item] = items_of(tiny_model(), LENGTHS[:1])
    same = replace(item, sample=replace(item.sample, other_teacher_prompts=(item.teacher_prompt, item.teacher_prompt)))
    assert chosen(Teacher(policy), [same])[0].hint_chosen == 0


def test_a_hint_that_the_context_has_no_room_for_is_not_taken(policy):
    [item] = several(items_of(tiny_model(), LENGTHS[:1]))
    [best] = chosen(Teacher(policy), [item])
    assert best.hint_chosen > 0
    room = len(best.teacher_prompt) + len(item.sample.answer_ids)
    assert chosen(Teacher(policy), [item], context=room)[0].hint_chosen == best.hint_chosen
    assert chosen(Teacher(policy), [item], context=room - 1)[0].hint_chosen != best.hint_chosen


def test_a_hint_that_could_not_be_rendered_is_none(policy):
    [item] = items_of(tiny_model(), ((4, 1),))
    without = replace(item, sample=replace(item.sample, other_teacher_prompts=((), ())))
    assert chosen(Teacher(policy), [without]) == [without]


def test_answers_that_lessons_were_shown_for_and_samples_without_a_teacher_choose_nothing(policy):
    shown, untaught = several(items_of(tiny_model(), LENGTHS[:2]))
    shown = replace(shown, sample=replace(shown.sample, shown=True))
    untaught = replace(untaught, teacher_prompt=())
    assert chosen(Teacher(policy), [shown, untaught]) == [shown, untaught]


def test_overlap_is_a_share_of_the_places_whatever_their_order():
    one = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
    assert overlap(one, one.flip(1)) == 1.0
    assert overlap(one, torch.tensor([[4, 9, 9, 1], [0, 0, 0, 0]])) == 0.25


def test_without_any_distillation_no_hint_is_chosen_and_ids_that_the_tokenizer_lacks_drop_the_sample():
    [item] = several(items_of(tiny_model(), LENGTHS[:1]))
    sample = item.sample
    assert prepare_batch([sample], replace(RECIPE, method="binary"), 64, 13)[0].teacher_prompt == ()
    strange = replace(sample, other_teacher_prompts=((1, 99),))
    assert prepare_batch([strange], RECIPE, 64, 13)[0].dropped == "unknown_ids"
