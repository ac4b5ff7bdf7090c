"""The demo's traffic: four tenants whose rhythms meet and part within a minute or two."""

from __future__ import annotations

from collections.abc import Iterator

from ..arrival import Arrival
from .merge import merge
from .traffic import Lengths, Traffic

TRAFFIC = (
    Traffic(
        "support-chat", 6.5, Lengths(600, 0.8, 16, 6000), Lengths(280, 0.6, 4, 1200), max_tokens=800,
        busy_s=24.0, quiet_s=8.0, phase_jitter=0.3, abandoned=0.05, patience_s=3.0,
    ),
    Traffic(
        "code-completion", 9.0, Lengths(2200, 0.5, 64, 7500), Lengths(28, 0.7, 1, 200),
        busy_s=4.0, quiet_s=9.0, phase_jitter=0.5, abandoned=0.03, patience_s=0.5,
    ),
    Traffic(
        "nightly-summariser", 8.0, Lengths(3600, 0.4, 600, 7500), Lengths(260, 0.4, 40, 800), "batch",
        busy_s=6.0, quiet_s=40.0, phase_jitter=0.2,
    ),
    Traffic(
        "voice", 1.2, Lengths(120, 0.5, 8, 800), Lengths(45, 0.5, 4, 200), "fast",
        busy_s=18.0, quiet_s=22.0, phase_jitter=0.6, abandoned=0.04, patience_s=1.0,
    ),
)  # fmt: skip


def generate(start_ns: int, seed: int = 0) -> Iterator[Arrival]:
    """The demo's requests from `start_ns` (UTC) on, without end. Same seed, same requests."""
    return merge(*(traffic.arrivals(seed, start_ns) for traffic in TRAFFIC))
