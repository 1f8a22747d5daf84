"""Plain Python numbers out of tensors, with the types that torch's own stubs leave open."""

from typing import cast

from torch import Tensor


def floats(values: Tensor) -> list[float]:
    """`[n]` → n floats."""
    return cast("list[float]", values.tolist())  # pyright: ignore[reportUnknownMemberType]


def integers(values: Tensor) -> list[int]:
    """`[n]` → n integers."""
    return cast("list[int]", values.tolist())  # pyright: ignore[reportUnknownMemberType]
