"""How many examples a property is tried with."""

from typing import Any

from hypothesis import settings

USUAL = 100


def tries(count: int, **changes: Any) -> settings:
    """`count` examples where a property without this has a hundred, and as many times more in a thorough run."""
    return settings(max_examples=count * settings().max_examples // USUAL, **changes)
