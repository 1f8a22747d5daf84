import random

import pytest

from backtalk_worker.engine.domain.text import IncrementalText, StopText, TokenBytes
from backtalk_worker.engine.inputs.prompts import token_bytes
from backtalk_worker.model.load import LoadedModel

TEXTS = ["Häßlich 你好 🎉👩‍👩‍👧 ok\n\ttab", "plain words, nothing else.", "   spaces  and <|im_end|> inside"]


@pytest.fixture
def tokens(tiny: LoadedModel) -> TokenBytes:
    return token_bytes(tiny)


@pytest.mark.parametrize("text", TEXTS)
def test_ids_added_one_by_one_give_the_text_that_the_tokenizer_gives(tiny: LoadedModel, tokens: TokenBytes, text: str):
    ids = tiny.encode(text)
    stream = IncrementalText(tokens, skip_special_tokens=True)
    parts = [stream.add(token)[0] for token in ids]
    assert "".join(parts) == tiny.decode(ids)
    assert not any("\ufffd" in part for part in parts)


def test_half_a_character_adds_nothing_until_it_is_whole(tiny: LoadedModel, tokens: TokenBytes):
    ids = tiny.encode("🎉")
    stream = IncrementalText(tokens, skip_special_tokens=True)
    assert len(ids) == 3
    assert [stream.add(token) for token in ids] == [("", ""), ("", ""), ("🎉", "🎉")]


def test_bytes_that_can_never_be_a_character_become_a_replacement_sign(tiny: LoadedModel, tokens: TokenBytes):
    first, second = tiny.encode("🎉")[0], tiny.encode("a")[0]
    stream = IncrementalText(tokens, skip_special_tokens=True)
    assert stream.add(first)[0] + stream.add(second)[0] == "\ufffda"


def test_a_special_token_is_named_in_logprobs_and_absent_from_the_text(tokens: TokenBytes):
    assert IncrementalText(tokens, skip_special_tokens=True).add(2) == ("", "<|im_end|>")
    assert IncrementalText(tokens, skip_special_tokens=False).add(2) == ("<|im_end|>", "<|im_end|>")


def test_a_stop_text_across_tokens_is_found_and_cut():
    stop = StopText(["END."], include=False)
    assert [stop.add(part) for part in ("one E", "N", "D", ". two")] == [
        ("one ", None),
        ("", None),
        ("", None),
        ("", "END."),
    ]


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_a_stop_text_is_found_where_searching_the_whole_text_finds_it(parts: int):
    rng = random.Random(parts)
    for _ in range(400):
        stops = ["".join(rng.choices("ab", k=rng.randint(1, 5))) for _ in range(rng.randint(1, 3))]
        text = "".join(rng.choices("abc", [4, 4, 1], k=24))
        found = StopText(stops, include=False)
        shown, complete = "", None
        for at in range(0, len(text), parts):
            more, complete = found.add(text[at : at + parts])
            shown += more
            if complete is not None:
                break
        first = min((text.find(stop) + len(stop) for stop in stops if stop in text), default=None)
        assert (complete is None) == (first is None), (stops, text)
        if complete is None:
            assert shown + found.flush() == text
        else:
            assert text.startswith(shown + complete), (stops, text)


def test_text_that_only_looked_like_a_stop_is_shown_when_it_is_not_one():
    stop = StopText(["END."], include=False)
    assert stop.add("EN") == ("", None)
    assert stop.add("OUGH") == ("ENOUGH", None)


def test_held_text_is_shown_when_the_answer_ends_otherwise():
    stop = StopText(["END."], include=False)
    stop.add("the EN")
    assert stop.flush() == "EN"


def test_the_earliest_of_several_stops_wins_and_can_be_included():
    assert StopText(["b", "a"], include=True).add("xxa b") == ("xxa", "a")
