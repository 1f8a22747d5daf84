"""Base of every failure that a caller is answered with: a code for logs and metrics, and words that quote no user text.

Each failure is a class. The engine adds HTTP's status and vLLM's type, the training worker gRPC's status and the retry.
"""

from typing import ClassVar, Self

from pydantic import ValidationError


class WorkerError(Exception):
    """Only subclasses with a code are raised; the facts of one failure are filled into their words."""

    code: ClassVar[str] = ""
    words: ClassVar[str] = "{}"

    def __init__(self, *facts: object) -> None:
        super().__init__(self.words.format(*facts))
        self._facts = facts

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), self._facts

    @classmethod
    def catalogue(cls) -> list[type[Self]]:
        """Every failure below this class."""
        return [each for child in cls.__subclasses__() for each in ([child] if child.code else []) + child.catalogue()]


class ConfigInvalidError(WorkerError):
    """A flag or an environment variable holds a value that can't be used; the process does not start."""

    code = "config_invalid"


def complaints(error: ValidationError) -> str:
    """One line that names each bad value and says what it should be."""
    said: list[str] = []
    for one in error.errors():
        words = one["msg"].removeprefix("Input ").removeprefix("String ").removeprefix("Value error, ")
        # A default that depends on a bad value is no second mistake.
        if one["type"] != "default_factory_not_called":
            said.append(f"{one['loc'][0]}: {one['input']!r} {words}" if one["loc"] else words)
    return "; ".join(said)
