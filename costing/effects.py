"""Effects: why one group of lines costs more or less than before, as integers that sum to the difference.

The difference is walked in a fixed order, each step changing one thing and leaving the rest as it was: how many
requests, how long their prompts, how much of them the cache served, how long the answers, which tiers and models they
went to, how much GPU time a token takes there, and last what GPU time costs. The last micro-units of rounding count as
efficiency, so that an unchanged rate has no effect.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from .apportion import round_together
from .rating import exact_price, micro_per_ns

Effect = Literal[
    "new", "gone", "volume", "prompt length", "cache", "output length", "tier mix", "efficiency", "idle",
    "overhead", "underfill", "unobserved", "correction", "rate",
]  # fmt: skip
WALK: tuple[Effect, ...] = ("volume", "prompt length", "cache", "output length", "tier mix", "efficiency", "rate")
Stream = tuple[str, str]
"""Tier and model."""


@dataclass(slots=True)
class Traffic:
    """What one stream of requests (a tier and model) used in a period: tokens, and GPU-nanoseconds by phase."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    prefill_ns: int = 0
    decode_ns: int = 0

    @property
    def computed_tokens(self) -> int:
        """Prompt tokens that the cache did not serve."""
        return self.prompt_tokens - self.cached_tokens

    @property
    def gpu_ns(self) -> int:
        """GPU time of both phases."""
        return self.prefill_ns + self.decode_ns

    def __iadd__(self, other: Traffic) -> Traffic:
        self.requests += other.requests
        self.prompt_tokens += other.prompt_tokens
        self.cached_tokens += other.cached_tokens
        self.output_tokens += other.output_tokens
        self.prefill_ns += other.prefill_ns
        self.decode_ns += other.decode_ns
        return self


@dataclass(slots=True)
class Usage:
    """A tenant (or another group of tenants' lines) in one period: its streams, what they cost and its part of idle."""

    streams: dict[Stream, Traffic] = field(default_factory=lambda: defaultdict(Traffic))
    value: int = 0
    """What the lines cost, in micro-units, or GPU-nanoseconds where there is no price."""
    idle: int = 0
    """Idle cost that a policy moved to them (or away, from idle lines)."""
    rated_ns: Counter[str] = field(default_factory=Counter[str])
    """GPU-nanoseconds by price of a GPU-hour; empty where `value` is GPU-nanoseconds itself."""

    @property
    def total(self) -> Traffic:
        """All streams together."""
        return _sum(self.streams.values())

    @property
    def exact(self) -> Fraction:
        """`value` before it was rounded line by line."""
        if not self.rated_ns:
            return Fraction(self.value)
        return sum((ns * micro_per_ns(exact_price(rate)) for rate, ns in self.rated_ns.items()), Fraction(0))

    @property
    def absent(self) -> bool:
        """Whether nothing was used."""
        return not (self.value or self.total.gpu_ns)


def tenant_effects(a: Usage, b: Usage) -> dict[Effect, int]:
    """Effects that sum to what `b` costs more than `a`, part of idle included; those of 0 are left out."""
    idle: dict[Effect, int] = {"idle": b.idle - a.idle}
    if a.absent or b.absent:
        whole: dict[Effect, int] = {"new" if a.absent else "gone": b.value - a.value}
        return without_zeros(whole | idle)
    quotas = [after - before for before, after in pairwise(_walk(a, b))]
    return without_zeros(dict(zip(WALK, round_together(quotas), strict=True)) | idle)


def other_effects(account: Effect, a: Usage, b: Usage) -> dict[Effect, int]:
    """Effects of an account without requests: how much more GPU time it took, and what GPU time costs."""
    before, after = a.total.gpu_ns, b.total.gpu_ns
    difference = b.value + b.idle - a.value - a.idle
    if account == "correction" or a.idle or b.idle or not before or not after:
        return without_zeros({account: difference})
    priced = round(b.exact - a.exact * after / before)
    return without_zeros({account: difference - priced, "rate": priced})


def without_zeros(effects: dict[Effect, int]) -> dict[Effect, int]:
    """Only the effects that moved something."""
    return {name: amount for name, amount in effects.items() if amount}


def _walk(a: Usage, b: Usage) -> Iterator[Fraction]:
    """The bill after each step of `WALK`, from what `a` cost to what `b` costs."""
    before, after = a.total, b.total
    price = a.exact / before.gpu_ns
    prefill, decode = Fraction(before.prefill_ns), Fraction(before.decode_ns)
    yield a.exact
    volume = _ratio(after.requests, before.requests)
    prefill, decode = prefill * volume, decode * volume
    yield price * (prefill + decode)
    prefill *= _ratio(after.prompt_tokens, before.prompt_tokens) / volume
    yield price * (prefill + decode)
    hits = _ratio(after.prompt_tokens, before.prompt_tokens)
    prefill *= _ratio(after.computed_tokens, before.computed_tokens) / hits
    yield price * (prefill + decode)
    decode *= _ratio(after.output_tokens, before.output_tokens) / volume
    yield price * (prefill + decode)
    yield price * sum((_at_old_efficiency(a, b, stream) for stream in b.streams), Fraction(0))
    rounding = b.value - b.exact - (a.value - a.exact)
    yield price * after.gpu_ns + rounding
    yield b.exact + rounding


def _ratio(after: int, before: int) -> Fraction:
    """How much a count grew; where it cannot be said, it counts as unchanged and a later step takes the difference."""
    return Fraction(after, before) if after and before else Fraction(1)


def _at_old_efficiency(a: Usage, b: Usage, stream: Stream) -> Fraction:
    """GPU time of b's tokens in a stream at what a token took there before; a stream that is new brings its own."""
    old, new = a.streams.get(stream, Traffic()), b.streams[stream]
    prefill, decode = Fraction(new.prefill_ns), Fraction(new.decode_ns)
    if old.computed_tokens and new.computed_tokens:
        prefill = Fraction(old.prefill_ns * new.computed_tokens, old.computed_tokens)
    if old.output_tokens and new.output_tokens:
        decode = Fraction(old.decode_ns * new.output_tokens, old.output_tokens)
    return prefill + decode


def _sum(parts: Iterable[Traffic]) -> Traffic:
    total = Traffic()
    for part in parts:
        total += part
    return total
