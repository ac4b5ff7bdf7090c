"""What alerts are derived from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..numbers import SECOND_NS

if TYPE_CHECKING:
    from ...events import Alert, SourceState, TokenPrice
    from ..fold import Fold, Second
    from ..snapshot import Snapshot


class Watch(NamedTuple):
    """A snapshot, the run it was made of, and what the store says of sources, prices and alerts."""

    snapshot: Snapshot
    fold: Fold
    sources: Sequence[SourceState] = ()
    prices: Sequence[TokenPrice] = ()
    recorded: Sequence[Alert] = ()
    """What the collector's rules found and nobody has seen the end of."""

    def seconds(self) -> list[Second]:
        """The window's seconds."""
        return self.fold.window(self.snapshot.now_ns - self.snapshot.wall_ns, self.snapshot.now_ns)

    @property
    def wall_s(self) -> float:
        """Length of the window."""
        return self.snapshot.wall_ns / SECOND_NS
