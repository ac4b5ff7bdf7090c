"""Advice: a change that would save money, with what it rests on. Planning writes it; screens show it."""

from typing import Annotated, NamedTuple

from .table import Table, col


class Advice(NamedTuple):
    """One proposal of the newest look at a store's traffic, ranked by what it saves."""

    rank: Annotated[int, col("", "1 saves the most")]
    lever: Annotated[str, col("", "what kind of change it is, as fast_cap or replicas")]
    title: Annotated[str, col("", "the change in one line")]
    evidence: Annotated[str, col("", "what in the store speaks for it")]
    effect: Annotated[str, col("", "what it does to every tenant's latency")]
    confidence: Annotated[str, col("", "how far the figures can be trusted, and why")]
    command: Annotated[str, col("", "the command that shows the same figures again")]
    currency: Annotated[str | None, col("", "ISO 4217 code of the amounts; null: no rate")]
    saved_micro: Annotated[int | None, col("10⁻⁶ currency", "off the invoice in a month of 730 h; null: no rate")]
    freed_gpu_ns: Annotated[int, col("GPU·ns", "busy GPU time less in a month of 730 h")]
    from_ns: Annotated[int, col("UTC ns", "start of the traffic that was looked at")]
    to_ns: Annotated[int, col("UTC ns", "end of that traffic")]
    advised_ns: Annotated[int, col("UTC ns", "when it was looked at")]


ADVICE = Table("advice", Advice, key=("rank",), time="advised_ns", sort=("rank",))
