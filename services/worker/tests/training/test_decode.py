"""Orders as the trainer sends them, and as plans of earlier releases have them."""

import pytest
from worker_process import train_request, write_tiny_model

from backtalk_worker.training.errors import RequestInvalidError
from backtalk_worker.training.inputs.decode import train_order

VOCABULARY, CONTEXT = 49_152, 8_192


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    write_tiny_model(folder)
    return folder


def recipe_of(model, **config):
    return train_order(train_request(model, **config), VOCABULARY, CONTEXT).recipe


def test_a_plan_that_names_no_teacher_and_no_shares_has_those_of_its_release(model):
    old = recipe_of(model, teacher="", told_share=0.0, distill_share=0.0, off_policy="")
    assert (old.teacher, old.told_share, old.distill_share, old.off_policy) == ("base", 0.5, 1.0, "drop")


def test_what_a_plan_names_is_taken(model):
    new = recipe_of(model, teacher="current", told_share=1.0, distill_share=0.25, off_policy="answer_anew")
    assert (new.teacher, new.told_share, new.distill_share, new.off_policy) == ("current", 1.0, 0.25, "answer_anew")


@pytest.mark.parametrize("share", ["told_share", "distill_share"])
def test_a_share_above_one_is_refused_by_name(model, share):
    with pytest.raises(RequestInvalidError, match=share):
        recipe_of(model, **{share: 1.5})
