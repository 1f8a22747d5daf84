"""Splits samples into micro-batches by a token budget.

In: lengths. Out: groups of indices, the same for the same lengths. A sample longer than the budget goes alone.
"""

from collections.abc import Sequence


def micro_batches(lengths: Sequence[int], token_budget: int) -> list[list[int]]:
    """Groups of similar length whose padded size (count × longest) keeps the budget."""
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        # Lengths ascend, so the newcomer is the longest of its group.
        if groups and (len(groups[-1]) + 1) * lengths[index] <= token_budget:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups
