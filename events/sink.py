"""Where engines put their events."""

from collections.abc import Sequence
from typing import Protocol

from .request import Request
from .run import Run
from .step import Share, Step


class Sink(Protocol):
    """Takes events in the order in which they happen. A call is one append: it never blocks, raises or does I/O."""

    def run(self, run: Run) -> None:
        """A run began, its heartbeat moved, or it ended (the newest record of a run replaces the one before)."""
        ...

    def step(self, step: Step, cells: Sequence[Share]) -> None:
        """A step ended. `cells` are in the order of (account, tenant, tier, phase), their `gpu_ns` null."""
        ...

    def request(self, request: Request) -> None:
        """A request ended."""
        ...
