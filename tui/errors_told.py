"""Errors as the screens tell them."""

from __future__ import annotations


def words(error: Exception) -> str:
    """An error for people: Farebox's own words, or the kind of error and what it says."""
    from ..errors import FareboxError

    return str(error) if isinstance(error, FareboxError) else f"{type(error).__name__}: {error}"
