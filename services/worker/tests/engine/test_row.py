import pytest

from backtalk_worker.engine.domain.request import Prompt, Sampling
from backtalk_worker.engine.domain.row import Row
from backtalk_worker.engine.domain.sampling import Draw
from backtalk_worker.engine.domain.text import TokenBytes

END = 3
TOKENS = TokenBytes([b"a", b"b", b".", b"<end>"], frozenset({END}))


def start(**settings: object) -> Row:
    sampling = Sampling(**{"max_tokens": 5, "end_ids": frozenset({END}), **settings})  # type: ignore[arg-type]
    return Row.start(Prompt((0, 1)), sampling, 100, TOKENS)


def take(row: Row, *ids: int):
    return [row.accept(Draw(token, None)) for token in ids]


def test_the_last_token_says_why_it_is_the_last():
    assert take(start(), 0, END)[-1].finish_reason == "stop"
    assert take(start(max_tokens=2), 0, 0)[-1].finish_reason == "length"


def test_an_end_token_counts_and_shows_nothing():
    tokens = take(start(skip_special_tokens=False), 0, END)
    assert [t.text for t in tokens] == ["a", ""]
    assert tokens[-1].token_text == "<end>"


def test_a_stop_id_is_named_and_its_text_is_cut():
    last = take(start(stop_ids=frozenset({2})), 0, 2)[-1]
    assert (last.finish_reason, last.stop_reason, last.text) == ("stop", 2, "")


def test_a_stop_text_is_named_and_cut():
    last = take(start(stop=("b.",)), 0, 1, 2)[-1]
    assert (last.finish_reason, last.stop_reason, last.text) == ("stop", "b.", "")


def test_held_text_comes_with_the_last_token():
    tokens = take(start(stop=("b.",), max_tokens=2), 0, 1)
    assert "".join(t.text for t in tokens) == "ab"


def test_ends_are_banned_before_the_least_length():
    row = start(min_tokens=2)
    assert row.request_draw().banned_ids == (END,)
    take(row, 0, 0)
    assert row.request_draw().banned_ids == ()


def test_the_context_bounds_the_answer():
    row = Row.start(Prompt((0, 1)), Sampling(max_tokens=50), 4, TOKENS)
    assert [t.finish_reason for t in take(row, 0, 0)] == [None, "length"]


@pytest.mark.parametrize("seed", [0, -5, 2**62])
def test_a_seed_gives_the_same_numbers_again(seed: int):
    first, second = start(seed=seed), start(seed=seed)
    assert [first.request_draw().uniform for _ in range(3)] == [second.request_draw().uniform for _ in range(3)]


def test_seeds_that_differ_in_their_sign_alone_give_other_numbers():
    draws = {seed: start(seed=seed).request_draw().uniform for seed in (-2, -1, 0, 1, 2)}
    assert len(set(draws.values())) == 5
