"""The view of the Batch page: the newest steps, with who sat where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..bus import Mark, marks_of

if TYPE_CHECKING:
    from ..boarding import Kind, Ride
    from ..scene import Scene


@dataclass(frozen=True, slots=True)
class BatchView:
    """The newest rides, the newest last, and a mark for everyone who rides in one of them."""

    seats: int
    rides: tuple[Ride, ...]
    marks: dict[Kind, Mark]
    is_live: bool
    """False: the engine has ended or gone silent, and nobody rides any more."""
    is_scraped: bool = False
    """Whether only its page is read, which tells no steps: then there are no rides."""


def batch_view(scene: Scene) -> BatchView:
    """Take the rides of a scene."""
    rides = tuple(scene.fold.boarding.rides)
    kinds = {kind for ride in rides for kind in (*ride.seats, *ride.off)}
    if scene.fold.intervals:
        return BatchView(0, (), {}, is_live=False, is_scraped=True)
    seats = scene.fold.run.max_num_seqs or max((ride.step.running for ride in rides), default=0)
    is_live = scene.snapshot.engine.state in ("live", "idle")
    return BatchView(seats, rides, marks_of(kinds), is_live)
