"""A scene: everything a page may look at to make what it shows. The worker's own; pages get frozen views of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..events import GpuSample, Run, SourceState
    from .fold import Fold
    from .snapshot import Snapshot, State


class Scene(NamedTuple):
    """One engine, its last five minutes, and what stands beside it in the store."""

    fold: Fold
    snapshot: Snapshot
    runs: Sequence[Run]
    gpus: Sequence[GpuSample]
    """The newest readings of the engine's host, by device and time, the oldest first."""
    sources: Sequence[SourceState]
    """The newest state of every source."""
    peak: tuple[int, int] | None
    """Datasheet FLOP/s and bytes/s of one GPU of the engine; None: not known."""

    def still_shows(self, fold: Fold, state: State, behind_ns: int | None) -> bool:
        """Whether this is what there is to see, as long as nothing new is told."""
        engine = self.snapshot.engine
        return fold is self.fold and (state, behind_ns) == (engine.state, engine.behind_ns)


Ask = Callable[[Scene], Any]
"""What a page wants of a scene. It runs in the worker, and touches no widget."""
