"""Kinds of wish about form: for each a rule that makes a target from plain sentences, and a rule that checks a text.

In: sentences of the base's own answers, a value for each kind (a number, a phrase). Out: text, or None where no rule
can make it.
Kinds of different slots can be wished together; they are applied in the order of this file.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from backtalk_worker.laptop_model.sentences import beginnings, sentences_of, shortened

Make = Callable[[str, str, random.Random], str | None]
Check = Callable[[str, str], bool]

NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
PICTURE = "[\U0001f300-\U0001faff\u2600-\u27bf\u2b50]\ufe0f?"
EMOJI = re.compile(f"{PICTURE}$")
LEADING_EMOJI = re.compile(f'^"?{PICTURE}')
HASHTAG = re.compile(r"\s#\w{2,}$")
ITEM_MARK = re.compile(r"\s*([-*•]|\d+[.)])\s")
LOWERED = re.compile(r"(the|an?|to|it|you|there|in|when|if|this|they|these|some|here|yes|for|one|as)$")

ALIKE = 0.5
"""Of the words of the shorter sentence: those that the other has, too."""


@dataclass(frozen=True)
class Kind:
    """One kind of wish."""

    name: str
    slot: str
    """Two kinds of one slot exclude each other."""
    sentences: tuple[int, int]
    """How many sentences of the base's answers it starts from."""
    make: Make
    check: Check


def word_count(text: str) -> int:
    """Words with a letter or a digit."""
    return sum(1 for word in text.split() if re.search(r"\w", word))


def _words(text: str, most: str, rng: random.Random) -> str | None:
    options = [short for one in sentences_of(text) for short in beginnings(one, 4, int(most))]
    options = [short for short in options if not re.match(r"(To|By|In|When|First)\b", short)]
    # The first sentence answers most; of its beginnings, one of the longest.
    return None if not options else rng.choice(sorted(options[:3], key=word_count)[-2:])


def _count(text: str) -> int:
    return len(sentences_of(text))


def _only_sentences(text: str, number: int) -> bool:
    told = _undressed(text)
    return _count(told) == number and told[-1:] in (".", "!", "?", '"', "'") and "\n" not in told


def _undressed(text: str) -> str:
    """Without an emoji or a hashtag at the end and quotation marks around it, which other wishes put there."""
    return HASHTAG.sub("", EMOJI.sub("", text.strip(' "“”')).strip()).strip(' "“”')


def _exclaimed(text: str, _: str, __: random.Random) -> str:
    """Full stops, and the ends of a list's items."""
    return re.sub(r"\.+(?=\s|$)|(?<=[\w)])(?=\n|$)", "!", text)


def _exclaims(text: str, _: str) -> bool:
    return _undressed(text)[-1:] == "!" and not re.search(r"[a-z]\.(\s|$)", text)


def _listed(mark: Callable[[int], str]) -> Make:
    def make(text: str, _: str, __: random.Random) -> str | None:
        short = [shortened(sentence, 14) for sentence in sentences_of(text)]
        items = [item for item in short if item]
        return "\n".join(mark(at) + item for at, item in enumerate(items, 1)) if len(items) >= 2 else None

    return make


def _lines_match(text: str, pattern: str) -> bool:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return len(lines) >= 2 and all(re.match(pattern, line) for line in lines)


def _lower_first(text: str) -> str:
    first = re.split(r"[\s,]", text, maxsplit=1)[0]
    return text[0].lower() + text[1:] if LOWERED.match(first.lower()) else text


def _opened(text: str, phrase: str, rng: random.Random) -> str:
    if "\n" in text:
        return f"{phrase}{rng.choice([':', '.', '!'])}\n{text}"
    return rng.choice([f"{phrase}, {_lower_first(text)}", f"{phrase}! {text}", f"{phrase}. {text}"])


def _named(text: str, phrase: str, rng: random.Random) -> str:
    if "\n" in text:
        return rng.choice([f"{phrase}:", f"Hi {phrase}!", f"Hello {phrase},"]) + f"\n{text}"
    options = [f"{phrase}, {_lower_first(text)}", f"Hi {phrase}! {text}", f"Hello {phrase}, {_lower_first(text)}"]
    return rng.choice(options)


def _closed(text: str, phrase: str, rng: random.Random) -> str:
    return f"{text} {phrase}{rng.choice(['.', '!', '.'])}"


def _bare(text: str) -> str:
    return re.sub(r"[\W_]+$", "", text).lower()


def _asks(text: str, phrase: str, _: random.Random) -> str:
    return f"{text} {phrase}"


def _without_commas(text: str, _: str, __: random.Random) -> str | None:
    """What needs none before a conjunction, and of other sentences those that have none."""
    spared = re.sub(r",(?= (and|or|but|so|which|while|because|as)\b)", "", text)
    return " ".join([one for one in sentences_of(spared) if "," not in one][:2]) or None


def _in_lines(text: str, _: str, __: random.Random) -> str | None:
    told = sentences_of(text)
    return "\n".join(told) if len(told) >= 2 else None


def _are_lines(text: str, _: str) -> bool:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return len(lines) >= 2 and all(_only_sentences(line, 1) and not ITEM_MARK.match(line) for line in lines)


def _faced(text: str, picture: str, _: random.Random) -> str:
    return f"{picture}\n{text}" if "\n" in text and ITEM_MARK.match(text) else f"{picture} {text}"


def _tagged(text: str, _: str, __: random.Random) -> str | None:
    """After the longest word, which says most of what it is about."""
    words = re.findall(r"[A-Za-z]{4,}", text)
    return f"{text} #{max(words, key=len).lower()}" if words else None


KINDS: tuple[Kind, ...] = (
    Kind("commas", "commas", (2, 3), _without_commas, lambda text, _: "," not in text and word_count(text) >= 3),
    Kind("words", "length", (2, 2), _words, lambda text, p: 2 <= word_count(text) <= int(p)),
    Kind("one", "length", (1, 1), lambda text, _, __: text, lambda text, _: _only_sentences(text, 1)),
    Kind("bullets", "shape", (2, 3), _listed(lambda _: "- "), lambda text, _: _lines_match(text, r"\s*[-*•] ")),
    Kind(
        "numbered", "shape", (2, 3), _listed(lambda at: f"{at}. "), lambda text, _: _lines_match(text, r"\s*\d+[.)] ")
    ),
    Kind("lines", "shape", (2, 3), _in_lines, _are_lines),
    Kind("exclaim", "ends", (1, 2), _exclaimed, _exclaims),
    Kind("question", "last", (1, 2), _asks, lambda text, _: text.rstrip(" \"'*").endswith("?")),
    Kind("closing", "last", (1, 2), _closed, lambda text, p: _bare(text).endswith(_bare(p))),
    Kind(
        "emoji",
        "last",
        (1, 2),
        lambda text, p, _: f"{text} {p}",
        lambda text, _: EMOJI.search(text.rstrip()) is not None,
    ),
    Kind("hashtag", "last", (1, 2), _tagged, lambda text, _: HASHTAG.search(text.rstrip(' "')) is not None),
    Kind("opening", "first", (1, 2), _opened, lambda text, p: text.lower().startswith(p.lower())),
    Kind("name", "first", (1, 2), _named, lambda text, p: p.lower() in text.lower()),
    Kind("emoji_first", "first", (1, 2), _faced, lambda text, _: LEADING_EMOJI.match(text.lstrip()) is not None),
    Kind("quotes", "around", (1, 2), lambda text, _, __: f'"{text}"', lambda text, _: _is_quoted(text)),
    Kind("lower", "case", (1, 2), lambda text, _, __: text.lower(), lambda text, _: _is_small(text)),
)
BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}


def _is_quoted(text: str) -> bool:
    return len(text) > 4 and text.strip()[0] in '"“' and text.strip()[-1] in '"”'


def _is_small(text: str) -> bool:
    letters = "".join(letter for letter in text if letter.isalpha())
    return len(letters) > 5 and letters.islower()


def made_for(wishes: Mapping[str, str], sentences: Sequence[str], rng: random.Random) -> str | None:
    """Some of the sentences after the rules of the wished kinds; None where one can't be applied or a check fails."""
    ordered = [kind for kind in KINDS if kind.name in wishes]
    shaped = [kind for kind in ordered if kind.slot in ("shape", "length")] or ordered
    text: str | None = " ".join(_unlike(sentences, rng.randint(*shaped[0].sentences), rng)) or None
    for kind in ordered:
        if text is None:
            return None
        text = kind.make(text, wishes[kind.name], rng)
    return text if text and obeys_all(wishes, text) else None


def _unlike(sentences: Sequence[str], count: int, rng: random.Random) -> list[str]:
    """So many of them at random, none of which says mostly what another says."""
    chosen: list[str] = []
    for one in rng.sample(list(sentences), len(sentences)):
        if len(chosen) < count and all(_overlap(one, other) < ALIKE for other in chosen):
            chosen.append(one)
    return chosen


def _overlap(one: str, other: str) -> float:
    words, others = (set(re.findall(r"\w+", text.lower())) for text in (one, other))
    return len(words & others) / max(1, min(len(words), len(others)))


def obeys_all(wishes: Mapping[str, str], text: str) -> bool:
    """Whether a text keeps the rules of all wished kinds; `wishes` has each kind's value."""
    kinds = [BY_NAME[name] for name in wishes]
    # What opens a list stands on a line of its own, which is no item.
    led = any(kind.slot == "first" for kind in kinds)
    checked = {"shape": text.partition("\n")[2] if led else text}
    return all(kind.check(checked.get(kind.slot, text), wishes[kind.name]) for kind in kinds)
