import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from backtalk_worker.laptop_model.answers import read_answers
from backtalk_worker.laptop_model.attempts import (
    LESS,
    TELLS,
    Attempted,
    attempt_all,
    preferred,
    read_attempts,
    write_attempts,
)
from backtalk_worker.laptop_model.rows import Row, questions_to_train, told_rows
from backtalk_worker.laptop_model.sampling import Drawn, draw
from backtalk_worker.laptop_model.telling import Telling
from backtalk_worker.model.load import LoadedModel

ROW = Row(("lower",), ("",), "Why is it so?", "small letters", "", "Why is it so?\n\nsmall letters", "it is so.")


def drawn(text: str, *, ended: bool = True) -> Drawn:
    return Drawn([5, 2], -1.5, text, ended)


def tells(nats: float, a_token: float = TELLS) -> Telling:
    return Telling(nats, a_token)


def test_the_answer_that_obeys_and_tells_most_is_preferred_to_one_that_fails():
    tried = [drawn("the sun is warm."), drawn("The Sun."), drawn("the moon is cold."), drawn("all is well here.")]
    told = {"the sun is warm.": tells(8, 2), "the moon is cold.": tells(9), "all is well here.": tells(12, TELLS - 0.1)}
    found = [preferred(ROW, tried, told, random.Random(seed)) for seed in range(20)]
    assert {one.good.text for one in found if one.good} == {"the moon is cold."}
    assert {one.bad.text for one in found if one.bad} == {"The Sun.", "all is well here."}


def test_an_answer_that_obeys_and_tells_much_less_is_worse():
    tried = [drawn("the moon is cold."), drawn("the sea is deep."), drawn("the sun is warm.")]
    told = {
        "the moon is cold.": tells(10),
        "the sea is deep.": tells(10 * LESS),
        "the sun is warm.": tells(10 * LESS + 0.1),
    }
    assert preferred(ROW, tried, told, random.Random(1)) == Attempted(ROW, tried[0], tried[1])


def test_an_answer_that_was_cut_does_not_obey():
    tried = [drawn("the sun is warm and", ended=False)]
    assert preferred(ROW, tried, {}, random.Random(1)) == Attempted(ROW, None, tried[0])


def test_without_a_failure_nothing_is_compared():
    tried = [drawn("the sun is warm.")]
    assert preferred(ROW, tried, {"the sun is warm.": tells(5)}, random.Random(1)) == Attempted(ROW, tried[0], None)


@torch.no_grad()
def test_an_answer_is_drawn_with_the_probability_that_it_has(tiny_model: LoadedModel):
    torch.manual_seed(1)
    prompts = [tiny_model.render_chat([{"role": "user", "content": text}]) for text in ("Why?", "How is it made?")]
    some = replace(tiny_model, end_ids=tuple(range(0, 49152, 12)))
    answers = draw(some, prompts, 8, 0.8, 12)
    assert [len(tried) for tried in answers] == [8, 8]
    for prompt, tried in zip(prompts, answers, strict=True):
        for one in tried:
            logits = tiny_model.network(torch.tensor([[*prompt, *one.ids]])).logits[0, len(prompt) - 1 : -1]
            said = logits.log_softmax(-1).gather(1, torch.tensor(one.ids)[:, None]).sum()
            assert one.logprob == pytest.approx(float(said), abs=1e-3)


@torch.no_grad()
def test_an_answer_goes_on_where_others_have_ended(tiny_model: LoadedModel):
    torch.manual_seed(3)
    some = replace(tiny_model, end_ids=tuple(range(0, 49152, 12)))
    prompt = tiny_model.render_chat([{"role": "user", "content": "Why?"}])
    [tried] = draw(some, [prompt], 24, 1.0, 30)
    assert [one.ended for one in tried] == [one.ids[-1] in some.end_ids for one in tried]
    assert all(token not in some.end_ids for one in tried for token in one.ids[:-1])
    assert len({len(one.ids) for one in tried}) > 3


def test_attempts_are_of_every_row_and_are_read_as_they_were_written(tiny_model: LoadedModel, tmp_path: Path):
    chosen = questions_to_train(read_answers())[:2]
    made = attempt_all(tiny_model, tiny_model, chosen, 4, lambda _: None)
    first = told_rows(chosen[0], random.Random(4))
    assert [rows[0].row.question for rows in made] == [one.question for one in chosen]
    assert [one.row for one in made[0]] == first
    assert any(one.bad for rows in made for one in rows)
    write_attempts(made, tmp_path / "attempts.jsonl")
    assert read_attempts(tmp_path / "attempts.jsonl") == made


def test_a_file_of_something_else_is_refused_by_name(tmp_path: Path):
    (tmp_path / "rows.jsonl").write_text('[{"row": 1}]\n')
    with pytest.raises(ValueError, match=r"rows\.jsonl holds no attempts"):
        read_attempts(tmp_path / "rows.jsonl")
