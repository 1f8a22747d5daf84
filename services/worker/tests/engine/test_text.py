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
