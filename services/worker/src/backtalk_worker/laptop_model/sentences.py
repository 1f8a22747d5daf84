"""Plain sentences out of an answer of the base, and shorter ones out of these.

In: text. Out: text that ends where a sentence ends. Lists and marks of emphasis are taken away.
"""

import re
from collections.abc import Sequence

MARK = re.compile(r"\*\*|__|`|^#+\s*", re.MULTILINE)
ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+", re.MULTILINE)
END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z\"'(])")
ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|vs|e\.g|i\.e|etc|approx|[A-Z])\.$")


def words(text: str) -> list[str]:
    """Parted at spaces."""
    return text.split()


BEFORE_A_CUT = frozenset(
    words(
        "and but or because which that who when while with by for in on at to from as so if where using "
        "such including until"
    )
)
"""A sentence may end before one of these words."""
NOT_LAST = BEFORE_A_CUT | frozenset(
    words(
        "the a an of is are was were be it its your their his her this these very more most can will should would "
        "could may might has have had not you we they i he she there also my our than into about like between "
        "through after before during both need needs caused based only even make makes made help helps use used called "
        "known involves requires includes"
    )
)
"""A sentence may not end with one of these words."""


def sentences_of(answer: str) -> list[str]:
    """Its whole sentences; a last one that was cut is left out."""
    text = ITEM.sub("", MARK.sub("", answer))
    parts = [part for line in text.splitlines() for part in _split(line.strip())]
    return [part for part in parts if part[-1] in ".!?" and len(part.split()) >= 3 and "|" not in part]


def _split(line: str) -> list[str]:
    parts: list[str] = []
    for part in END.split(line):
        if parts and ABBREVIATION.search(parts[-1]):
            parts[-1] += " " + part
        elif part:
            parts.append(part)
    return parts


def shortened(sentence: str, words_max: int) -> str | None:
    """The longest beginning of a sentence that can stand alone; None without one."""
    words = sentence.split()
    if len(words) <= words_max:
        return sentence
    cuts = [at for at in range(4, words_max + 1) if _can_end(words, at)]
    return None if not cuts else _ended(words[: cuts[-1]])


def beginnings(sentence: str, words_min: int, words_max: int) -> list[str]:
    """Every beginning of a sentence that can stand alone, and the sentence, where their length is within bounds."""
    words = sentence.split()
    made = [_ended(words[:at]) for at in range(words_min, min(words_max, len(words) - 1) + 1) if _can_end(words, at)]
    return [*made, sentence] if words_min <= len(words) <= words_max else made


def _can_end(words: Sequence[str], at: int) -> bool:
    last, following = words[at - 1], words[at].lower().strip(",;:")
    if last.lower().strip(",;:") in NOT_LAST or words[0].lower() in ("when", "if", "while", "although"):
        return False
    return last[-1] in ",;" or following in BEFORE_A_CUT


def _ended(words: Sequence[str]) -> str:
    return " ".join(words).rstrip(",;:.!?") + "."
