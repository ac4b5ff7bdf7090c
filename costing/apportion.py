"""Integers that add up: the largest-remainder rule, ties to the earlier line."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def top_up(floors: Sequence[int], remainders: Sequence[int | Fraction], leftover: int) -> list[int]:
    """Add 1 to the `leftover` floors with the largest remainders, ties to the earlier one.

    Raises ValueError unless 0 ≤ leftover ≤ number of floors.
    """
    if not 0 <= leftover <= len(floors):
        raise ValueError(f"{leftover} units are left for {len(floors)} parts: at most one each can be given")
    order = sorted(range(len(floors)), key=lambda i: -remainders[i])
    result = list(floors)
    for i in order[:leftover]:
        result[i] += 1
    return result


def apportion(total: int, weights: Sequence[int | Fraction]) -> list[int]:
    """Split `total` in proportion to `weights` into integers that sum to it.

    Raises ValueError when a weight is negative or all are zero.
    """
    whole = sum(weights)
    if whole <= 0 or min(weights) < 0:
        raise ValueError("weights must not be negative, and not all zero")
    parts = [divmod(total * weight, whole) for weight in weights]
    floors = [int(floor) for floor, _ in parts]
    return top_up(floors, [rest for _, rest in parts], total - sum(floors))


def round_together(quotas: Sequence[Fraction]) -> list[int]:
    """Round exact quotas to integers whose sum is the rounded sum (half to even)."""
    floors = [quota.numerator // quota.denominator for quota in quotas]
    rests = [quota - floor for quota, floor in zip(quotas, floors, strict=True)]
    return top_up(floors, rests, round(sum(quotas, Fraction(0))) - sum(floors))
