"""What is left out before any forward pass, where hints go, and how micro-batches are cut."""

from dataclasses import replace

import pytest
from pydantic import ValidationError
from tiny_policy import RECIPE

from backtalk_worker.process.errors import complaints
from backtalk_worker.training.domain.batch import prepare_batch
from backtalk_worker.training.domain.batch import with_hints as placed
from backtalk_worker.training.domain.sample import Sample
from backtalk_worker.training.domain.token_budget import micro_batches

TALK = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Why?"}]


def with_hints(*given):
    """The messages that the teacher is shown, where it can be shown any."""
    shown = placed(*given)
    assert shown is not None
    return shown


def sample(**fields):
    given = {
        "turn": "turn_1", "prompt_ids": (1, 2, 3), "answer_ids": (4, 5, 6, 7), "logprobs": (-1.0, -2.0, -0.5, -0.1),
        "temperature": 0.8, "advantage": -1.0, "cut": False, "hints": ("Be brief.",), "messages": TALK, "tools": (),
        "human_message": 1,
    }  # fmt: skip
    return Sample(**(given | fields))


def render(messages, _tools):
    """Ids that grow with every character beyond those of the plain conversation."""
    extra = sum(len(str(message["content"])) for message in messages) - 12
    return [1, 2, 3, *([9] * extra)]


def prepared(one, recipe=RECIPE, context=64, template=render):
    return prepare_batch([one], recipe, context, template)[0]


def test_a_hinted_sample_has_a_teacher_whose_prompt_holds_the_hint():
    item = prepared(sample())
    assert (item.dropped, item.trained) == ("", True)
    assert item.teacher_prompt[:3] == (1, 2, 3)
    assert len(item.teacher_prompt) == 3 + len("\n\nBe brief.")


def test_without_hints_there_is_no_teacher_and_nothing_is_rendered():
    item = prepared(sample(hints=()), template=lambda *_: pytest.fail("rendered"))
    assert (item.teacher_prompt, item.dropped, item.trained) == ((), "", True)


def test_without_a_distillation_term_nothing_is_rendered():
    recipe = replace(RECIPE, method="binary")
    assert prepared(sample(), recipe, template=lambda *_: pytest.fail("rendered")).teacher_prompt == ()


@pytest.mark.parametrize("template", [lambda *_: [1, 2], lambda *_: None])
def test_a_template_that_does_not_give_the_captured_ids_takes_the_term_away_and_says_so(template):
    item = prepared(sample(), template=template)
    assert (item.teacher_prompt, item.dropped, item.trained) == ((), "template_mismatch", True)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"answer_ids": (), "logprobs": ()}, "empty"),
        ({"prompt_ids": ()}, "empty"),
        ({"logprobs": (-1.0,)}, "logprobs_invalid"),
        ({"logprobs": (-1.0, float("nan"), -1.0, -1.0)}, "logprobs_invalid"),
        ({"logprobs": (-1.0, -9999.0, 0.5, -1.0)}, "logprobs_invalid"),
        ({"temperature": 0.0}, "logprobs_invalid"),
        ({"advantage": float("inf")}, "logprobs_invalid"),
        ({"prompt_ids": (1,) * 61}, "too_long"),
    ],
)
def test_a_sample_that_cannot_be_trained_on_is_dropped_with_its_reason(fields, reason):
    item = prepared(sample(**fields))
    assert (item.dropped, item.trained) == (reason, False)


def test_only_the_first_answer_tokens_are_trained_on():
    item = prepared(sample(), replace(RECIPE, max_answer_tokens=2))
    assert item.sample.answer_ids == (4, 5)
    assert item.sample.logprobs == (-1.0, -2.0)


def test_a_teacher_that_does_not_fit_the_context_takes_the_term_away():
    item = prepared(sample(), context=10)
    assert (item.teacher_prompt, item.dropped, item.trained) == ((), "too_long", True)


def test_all_hints_follow_the_human_message_after_a_blank_line():
    shown = with_hints(TALK, ["One. ", "Two."], "human", 1)
    assert shown == [TALK[0], {"role": "user", "content": "Why?\n\nOne.\nTwo."}]
    assert TALK[1]["content"] == "Why?"


def test_the_human_message_may_stand_before_machine_context():
    talk = [{"role": "user", "content": "Why?"}, {"role": "user", "content": "<state/>"}]
    assert with_hints(talk, ["Be brief."], "human", 0)[0]["content"] == "Why?\n\nBe brief."
    assert with_hints(talk, ["Be brief."], "human", -1)[1]["content"] == "<state/>\n\nBe brief."


def test_hints_go_to_the_end_of_the_system_message_or_make_one():
    assert with_hints(TALK, ["Be brief."], "system", -1)[0]["content"] == "Be kind.\n\nBe brief."
    made = with_hints(TALK[1:], ["Be brief."], "system", -1)
    assert made == [{"role": "system", "content": "Be brief."}, TALK[1]]


def test_hints_follow_the_last_text_part_of_a_message_in_parts():
    parts = [{"type": "text", "text": "Why?"}, {"type": "image_url", "image_url": {}}]
    shown = with_hints([{"role": "user", "content": parts}], ["Be brief."], "human", -1)
    assert shown[0]["content"] == [{"type": "text", "text": "Why?\n\nBe brief."}, parts[1]]
    assert parts[0]["text"] == "Why?"


def test_without_a_human_message_there_is_no_teacher():
    assert placed(TALK[:1], ["Be brief."], "human", -1) is None
    assert placed(TALK, ["Be brief."], "human", 7) is None


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
