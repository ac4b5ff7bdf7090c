"""How many examples a property is tried with."""

from typing import Any

from hypothesis import settings

FULL = 100


def tries(count: int, **changes: Any) -> settings:
    """`count` examples where the profile gives a hundred, and more or fewer in proportion; at least one."""
    return settings(max_examples=max(1, count * settings().max_examples // FULL), **changes)
