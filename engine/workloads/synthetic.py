"""A made-up mix: chat, code completion and a summariser."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..arrival import Arrival
from .merge import merge
from .traffic import Lengths, Traffic

TRAFFIC = (
    Traffic("chat", 4.0, Lengths(450, 0.9, 8, 6000), Lengths(220, 0.7, 1, 1500), max_tokens=1024, abandoned=0.02),
    Traffic("code", 12.0, Lengths(1500, 0.7, 32, 7000), Lengths(24, 0.8, 1, 300), busy_s=6.0, quiet_s=18.0),
    Traffic("summariser", 3.0, Lengths(4500, 0.4, 800, 7500), Lengths(320, 0.4, 40, 1000), "batch", None, 15.0, 45.0),
)


def generate(seed: int = 0, start_ns: int = 0, requests: int = 2000) -> Iterator[Arrival]:
    """The first `requests` requests of the mix from `start_ns` (UTC) on. Same seed, same requests."""
    return islice(merge(*(traffic.arrivals(seed, start_ns) for traffic in TRAFFIC)), requests)
