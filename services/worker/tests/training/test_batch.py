"""What is left out before any forward pass, and how micro-batches are cut."""

from dataclasses import replace

import pytest
from pydantic import ValidationError
from tiny_policy import RECIPE

from backtalk_worker.process.errors import complaints
from backtalk_worker.training.domain.batch import prepare_batch
from backtalk_worker.training.domain.sample import Sample
from backtalk_worker.training.domain.token_budget import micro_batches


def sample(**fields):
    given = {
        "turn": "turn_1", "prompt_ids": (1, 2, 3), "answer_ids": (4, 5, 6, 7), "logprobs": (-1.0, -2.0, -0.5, -0.1),
        "temperature": 0.8, "advantage": -1.0, "cut": False, "teacher_prompt_ids": (1, 2, 9, 9, 3),
    }  # fmt: skip
    return Sample(**(given | fields))


def prepared(one, recipe=RECIPE, context=64):
    return prepare_batch([one], recipe, context, 13)[0]


def test_a_sample_with_a_hinted_prompt_has_a_teacher_that_is_shown_it():
    item = prepared(sample())
    assert (item.dropped, item.trained, item.teacher_prompt) == ("", True, (1, 2, 9, 9, 3))


def test_without_a_hinted_prompt_there_is_no_teacher():
    item = prepared(sample(teacher_prompt_ids=()))
    assert (item.teacher_prompt, item.dropped, item.trained) == ((), "", True)


def test_without_a_distillation_term_there_is_no_teacher():
    assert prepared(sample(), replace(RECIPE, method="binary")).teacher_prompt == ()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"answer_ids": (), "logprobs": ()}, "empty"),
        ({"prompt_ids": ()}, "empty"),
        ({"prompt_ids": (1, 13)}, "unknown_ids"),
        ({"answer_ids": (4, 5, 13, 7)}, "unknown_ids"),
        ({"teacher_prompt_ids": (1, 49_152)}, "unknown_ids"),
        ({"logprobs": (-1.0,)}, "logprobs_invalid"),
        ({"logprobs": (-1.0, float("nan"), -1.0, -1.0)}, "logprobs_invalid"),
        ({"logprobs": (-1.0, -9999.0, 0.5, -1.0)}, "logprobs_invalid"),
        ({"temperature": 0.0}, "logprobs_invalid"),
        ({"temperature": 1e-40}, "logprobs_invalid"),
        ({"advantage": float("inf")}, "logprobs_invalid"),
        ({"prompt_ids": (1,) * 61}, "too_long"),
        # With lessons shown, the answer that the policy is to give must fit: up to 32 tokens.
        ({"prompt_ids": (1,) * 33, "shown": True}, "too_long"),
        ({"teacher_prompt_ids": (1,) * 33, "shown": True}, "too_long"),
        ({"teacher_prompt_ids": (), "shown": True}, "untaught"),
    ],
)
def test_a_sample_that_cannot_be_trained_on_is_dropped_with_its_reason(fields, reason):
    item = prepared(sample(**fields))
    assert (item.dropped, item.trained) == (reason, False)


def test_a_turn_with_lessons_shown_needs_no_answer_of_its_own():
    item = prepared(sample(answer_ids=(), logprobs=(), shown=True))
    assert (item.dropped, item.trained, item.teacher_prompt) == ("", True, (1, 2, 9, 9, 3))


def test_only_the_first_answer_tokens_are_trained_on():
    item = prepared(sample(), replace(RECIPE, max_answer_tokens=2))
    assert item.sample.answer_ids == (4, 5)
    assert item.sample.logprobs == (-1.0, -2.0)


def test_a_teacher_that_does_not_fit_the_context_takes_the_term_away():
    item = prepared(sample(), context=8)
    assert (item.teacher_prompt, item.dropped, item.trained) == ((), "too_long", True)


def test_micro_batches_keep_the_budget_and_hold_every_sample_once():
    lengths = [5, 90, 7, 7, 30, 6]
    groups = micro_batches(lengths, 30)
    assert sorted(i for group in groups for i in group) == list(range(6))
    assert all(len(group) * max(lengths[i] for i in group) <= 30 or len(group) == 1 for group in groups)
    assert groups == micro_batches(lengths, 30)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"method": "grpo"}, "method"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"kl_beta": -1.0}, "kl_beta"),
        ({"divergence": "jsd", "jsd_beta": 1.0}, "jsd_beta"),
        ({"dual_clip": 1.0}, "dual_clip"),
        ({"mean_answer_length": 0.0}, "mean_answer_length"),
        ({"step_bound": float("nan")}, "step_bound"),
    ],
)
def test_a_recipe_that_makes_no_sense_says_which_setting(fields, named):
    with pytest.raises(ValidationError) as refused:
        replace(RECIPE, **fields)
    assert named in complaints(refused.value)
    assert complaints(refused.value).count(";") == 0


def test_pure_methods_weigh_their_one_term_fully():
    assert replace(RECIPE, method="binary").term_weights == (1.0, 0.0)
    assert replace(RECIPE, method="opd").term_weights == (0.0, 1.0)
    assert RECIPE.term_weights == (0.3, 0.7)


def test_a_first_hint_without_room_leaves_the_others():
    several = sample(teacher_prompt_ids=(1,) * 61, other_teacher_prompts=((1,) * 80, (7, 8)))
    item = prepared(several)
    assert (item.dropped, item.teacher_prompt, item.hint_chosen) == ("", (7, 8), 2)
    empty = prepared(replace(several, teacher_prompt_ids=()))
    assert (empty.dropped, empty.teacher_prompt) == ("", (7, 8))
    none = prepared(replace(several, other_teacher_prompts=()))
    assert (none.dropped, none.teacher_prompt) == ("too_long", ())
