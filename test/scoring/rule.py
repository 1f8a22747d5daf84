"""The rule of a user's file: when does an answer violate the wish?

In: `{"violates_if": [{"op": "matches" | "not_matches", "pattern", "flags"}, {"op": "words_over", "max"}, {"op":
"words_under", "min"}, {"op": "cut"}]}`, flags of "imsu". Out: a function of an answer. Any of the operations is enough.
The simulated user reads the same patterns in JavaScript: here they mean what they mean there, or are refused.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from scoring.answer import Answer

Rule = Callable[[Answer], bool]
FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "u": re.UNICODE}
IN_CLASS = {r"\w": "a-zA-Z0-9_", r"\d": "0-9"}


def obeys_by(rule: object) -> Rule:
    """True for an answer that obeys; ValueError names what of the rule cannot be read."""
    listed = cast(Mapping[str, Any], rule).get("violates_if") if isinstance(rule, Mapping) else None
    if not isinstance(listed, list) or not listed:
        raise ValueError("rule.violates_if must be a list of operations")
    violations = [_violation(index, one) for index, one in enumerate(cast(list[Any], listed))]
    return lambda answer: not any(violates(answer) for violates in violations)


def _violation(index: int, fields: object) -> Rule:
    read = cast(dict[str, Any], fields) if isinstance(fields, dict) else {}
    match read:
        case {"op": "cut"}:
            return lambda answer: not answer.ended
        case {"op": "words_over", "max": int(most)}:
            return lambda answer: len(answer.text.split()) > most
        case {"op": "words_under", "min": int(least)}:
            return lambda answer: len(answer.text.split()) < least
        case {"op": "matches", "pattern": str(pattern)}:
            found = _pattern(index, pattern, read.get("flags", ""))
            return lambda answer: found.search(answer.text.strip()) is not None
        case {"op": "not_matches", "pattern": str(pattern)}:
            wanted = _pattern(index, pattern, read.get("flags", ""))
            return lambda answer: wanted.search(answer.text.strip()) is None
        case _:
            raise ValueError(f"rule.violates_if.{index} is no operation that is known")


def _pattern(index: int, pattern: str, letters: object) -> re.Pattern[str]:
    if not isinstance(letters, str) or not set(letters) <= set(FLAGS):
        raise ValueError(f"rule.violates_if.{index}.flags are letters of {''.join(FLAGS)}")
    flags = sum(FLAGS[letter] for letter in set(letters))
    try:
        return re.compile(_with_ascii_words(pattern), flags)
    except re.error as error:
        why = f"is no regular expression to Python ({error.msg})"
        raise ValueError(f"rule.violates_if.{index}.pattern {why}") from error


def _with_ascii_words(pattern: str) -> str:
    """As JavaScript has word characters, their bounds and digits; white space and case are Unicode's in both."""
    in_class = False
    parts: list[str] = []
    tokens: list[str] = re.findall(r"\\.|.", pattern, re.DOTALL)
    for token in tokens:
        if token in "[]":
            in_class = token == "["
        if in_class:
            parts.append(IN_CLASS.get(token, token))
        else:
            parts.append(f"(?a:{token})" if re.fullmatch(r"\\[wWdDbB]", token) else token)
    return "".join(parts)
