"""Routes: ordered rules that say which endpoint a request goes to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from ...events import Tier
from ..arrival import Arrival

TIERS: tuple[Tier, ...] = get_args(Tier)
ANY_LENGTH = (1, None)
_BOUND = re.compile(r"(<=?|>=?)\s*(\d+)")
_RANGE = re.compile(r"(\d+)\s*-\s*(\d+)")


@dataclass(frozen=True)
class Route:
    """Requests that meet every condition go to `endpoint`; a condition that is not given is met by all."""

    endpoint: str
    tier: Tier | None = None
    tenant: str | None = None
    """A tenant's name, in which `*` stands for any text."""
    prompt_tokens: tuple[int, int | None] = ANY_LENGTH
    """Fewest and most prompt tokens, both included; a most of None: any number."""

    def takes(self, arrival: Arrival) -> bool:
        """Whether a request meets all conditions."""
        least, most = self.prompt_tokens
        return (
            self.tier in (None, arrival.tier)
            and least <= arrival.prompt_tokens
            and (most is None or arrival.prompt_tokens <= most)
            and (self.tenant is None or self._pattern.fullmatch(arrival.tenant_id) is not None)
        )

    def covers(self, other: Route) -> bool:
        """Whether it takes all that `other` takes, so that `other` after it is never reached.

        A pattern that matches another as plain text matches whatever the other's stars stand for as well.
        """
        least, most = self.prompt_tokens
        other_least, other_most = other.prompt_tokens
        return (
            self.tier in (None, other.tier)
            and least <= other_least
            and (most is None or (other_most is not None and other_most <= most))
            and self._pattern.fullmatch("*" if other.tenant is None else other.tenant) is not None
        )

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        text = "*" if self.tenant is None else self.tenant
        return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)


def lengths(text: str) -> tuple[int, int | None]:
    """Read `<500`, `<=500`, `>500`, `>=500` or `500-2000` as the fewest and most tokens; ValueError if none fits."""
    least, most = _lengths(text.strip())
    if most is not None and most < max(least, 1):
        raise ValueError(f'"{text}" fits no prompt')
    return max(least, 1), most


def _lengths(text: str) -> tuple[int, int | None]:
    if bound := _BOUND.fullmatch(text):
        sign, number = bound[1], int(bound[2])
        least = number + (sign == ">")
        return (1, number - (sign == "<")) if sign.startswith("<") else (least, None)
    if both := _RANGE.fullmatch(text):
        return int(both[1]), int(both[2])
    raise ValueError(f'"{text}" is not a number of tokens: write <500, >=500 or 500-2000')
