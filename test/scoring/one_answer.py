"""Measures of the text of one answer alone: is it empty, looping, an echo.

In: texts. Out: booleans. Nothing here looks at meaning.
"""

import re
from collections import Counter

from scoring.answer import Answer

WORDS_MIN = 3
LOOP_LENGTH = 4
LOOP_TIMES = 3
ECHO_SHARE = 0.6
STEM = 5
"""Letters by which two words count as the same."""


def words(text: str) -> list[str]:
    """Words in lower case."""
    return [word.lower() for word in re.findall(r"[A-Za-z']+", text)]


FUNCTION_WORDS = frozenset(
    words(
        "a about an and any are as at be been best but by can could did do does for from get good had has have here "
        "how i if in is it its make many may me might more most much must my not of on or our should so some such "
        "suggest tell than that the then there these they this to us was way we were what when where which who why "
        "will with would you your"
    )
)


def stem(word: str) -> str:
    """The first letters of a word."""
    return word.lower()[:STEM]


def is_empty(text: str) -> bool:
    """Under three words."""
    return len(text.split()) < WORDS_MIN


def is_looping(text: str) -> bool:
    """Some four words in a row come three times or more."""
    said = text.lower().split()
    runs = Counter(tuple(said[i : i + LOOP_LENGTH]) for i in range(len(said) - LOOP_LENGTH + 1))
    return any(times >= LOOP_TIMES for times in runs.values())


def is_echo(answer: Answer) -> bool:
    """Most of what it says stands in the question already, or it says nothing of its own."""
    asked = {stem(word) for word in words(answer.question)}
    said = [word for word in words(answer.text) if word not in FUNCTION_WORDS and len(word) > 1]
    return not said or sum(stem(word) in asked for word in said) / len(said) >= ECHO_SHARE


def without_copied_words(answer: Answer) -> str:
    """The answer less every word that the question has too; a dot when no letter is left."""
    asked = {stem(word) for word in words(answer.question)}
    kept = [word for word in answer.text.split() if stem(re.sub(r"[^A-Za-z']", "", word)) not in asked]
    rest = " ".join(kept)
    return rest if re.search(r"[A-Za-z]", rest) else "."
