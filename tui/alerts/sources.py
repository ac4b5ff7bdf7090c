"""Alerts about sources: an engine that went silent, a page or device that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .. import numbers
from ..snapshot import Alert

if TYPE_CHECKING:
    from .watch import Watch


def engine_lost(watch: Watch) -> Iterator[Alert]:
    """The engine has told nothing for a while, and has not said that it ended."""
    s = watch.snapshot
    if s.engine.state != "lost":
        return
    yield Alert(
        "lost",
        "bad",
        f"{s.engine.engine_id} has gone silent",
        f"Its newest word is of {numbers.clock(s.now_ns)} UTC, and it did not say that it ended. Time since then is "
        "booked as unobserved, not as idle.",
        "Look at the engine and at what records it: farebox doctor STORE",
    )


def sources(watch: Watch) -> Iterator[Alert]:
    """Sources that are down or degraded, each with its own reason."""
    for state in watch.sources:
        if state.state == "up":
            continue
        yield Alert(
            f"source:{state.source}",
            "bad" if state.state == "down" else "warn",
            f"{state.source} ({state.kind}) is {state.state} since {numbers.clock(state.since_ns)} UTC",
            state.why or "It did not say why.",
            "What it would tell is missing, not zero: farebox doctor STORE looks at every source.",
        )
