"""All levers, in the order in which people would try them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from . import capacity, hardware, scheduling, traffic
from .candidate import Candidate, Look

Lever = Callable[[Look], Iterator[Candidate]]
_SCHEDULING: tuple[Lever, ...] = (
    scheduling.batching, scheduling.fast_mode, scheduling.waiting, scheduling.seats, scheduling.prefixes,
    traffic.outputs, traffic.prompts,
)  # fmt: skip
_HARDWARE: tuple[Lever, ...] = (
    capacity.replicas, capacity.nights, hardware.quantisation, hardware.other_gpus, hardware.small_model,
)  # fmt: skip


def candidates_of(look: Look) -> list[Candidate]:
    """What the traffic allows to try."""
    levers = (*_SCHEDULING, *(_HARDWARE if hardware.has_replica(look) else ()))
    return [candidate for lever in levers for candidate in lever(look)]
