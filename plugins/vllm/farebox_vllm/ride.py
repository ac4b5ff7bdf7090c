"""A ride: one request from its arrival in EngineCore to its end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .riders import Group


LONGEST_WAIT_S = 600.0


def waited_ns(request: Any) -> int:
    """How long a request took from the API server to the scheduler, by the host's clock.

    0 where that cannot be: the clocks of two hosts disagree, or one was set meanwhile.
    """
    now_s = time.time()
    waited_s = now_s - getattr(request, "arrival_time", now_s)
    return int(waited_s * 1e9) if 0 < waited_s < LONGEST_WAIT_S else 0


class Ride:
    """What is remembered of a request beyond what vLLM's own `Request` knows.

    Instants are on the monotonic clock. `base` is set while the request rides among the decoders of its group, where
    its next position is `base` + the number of steps they have taken.
    """

    __slots__ = ("arrived_ns", "base", "cached", "first_token_ns", "group", "high_water", "request", "scheduled_ns")

    def __init__(self, request: Any, group: Group, arrived_ns: int) -> None:
        self.request = request
        self.group = group
        self.arrived_ns = arrived_ns
        self.scheduled_ns: int | None = None
        self.first_token_ns: int | None = None
        self.cached = 0
        self.high_water = 0
        """Positions whose rows were computed already; what is computed below it is recomputation."""
        self.base: int | None = None


class Chunk:
    """The rows of one request in one step, where they are not just one decode row of a steady rider."""

    __slots__ = (
        "attended",
        "blocks",
        "cached",
        "decodes",
        "output",
        "prefills",
        "recomputed",
        "ride",
    )

    def __init__(self, ride: Ride, rows: int, block_size: int) -> None:
        """Look at a request right after vLLM scheduled `rows` rows of it and counted them as computed."""
        request = ride.request
        after = request.num_computed_tokens
        before = after - rows
        self.ride = ride
        self.cached = ride.cached if ride.scheduled_ns is None else 0
        self.recomputed = min(rows, max(0, ride.high_water - before))
        fresh = rows - self.recomputed
        self.prefills = min(fresh, max(0, request.num_prompt_tokens - before - self.recomputed))
        self.decodes = fresh - self.prefills
        self.attended = rows * before + rows * (rows + 1) // 2
        self.blocks = -(-after // block_size)
        self.output = 1 if after >= request.num_tokens and request.sampling_params is not None else 0
        if after > ride.high_water:
            ride.high_water = after

    @property
    def is_caught_up(self) -> bool:
        """Whether the request goes on with one decode row per step."""
        ride = self.ride
        request = ride.request
        after = request.num_computed_tokens
        return bool(self.output) and after >= request.num_prompt_tokens and after >= ride.high_water
