"""The view of the History page: a window of the ledger in equal parts, and what it adds up to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..numbers import SECOND_NS
from .booked import booked

if TYPE_CHECKING:
    import pyarrow as pa

    from ...storage.store import Store
    from ..desk import Desk

MINUTE_NS = 60 * SECOND_NS
FEWEST = 5
"""Minutes that a window has at least: the ledger keeps whole minutes."""
COLUMNS = ("minute_ns", "account", "tenant_id", "gpu_ns", "prompt_tokens", "output_tokens", "requests")
OTHERS = ("idle", "overhead", "underfill", "unobserved")


class Window(NamedTuple):
    """Whole minutes [from, to) in UTC ns."""

    from_ns: int
    to_ns: int

    @property
    def minutes(self) -> int:
        """Its length."""
        return (self.to_ns - self.from_ns) // MINUTE_NS

    def zoomed(self, factor: float, whole: Window) -> Window:
        """A longer (above 1) or shorter window around the same middle, within `whole`."""
        minutes = max(FEWEST, min(round(self.minutes * factor), whole.minutes))
        middle = (self.from_ns + self.to_ns) // 2
        return Window(middle - minutes * MINUTE_NS // 2, 0)._within(minutes, whole)

    def moved(self, part: float, whole: Window) -> Window:
        """The window moved by a part of its length, within `whole`."""
        by = round(self.minutes * part) or (1 if part > 0 else -1)
        return Window(self.from_ns + by * MINUTE_NS, 0)._within(self.minutes, whole)

    def _within(self, minutes: int, whole: Window) -> Window:
        last = whole.to_ns - minutes * MINUTE_NS
        start = max(whole.from_ns, min(self.from_ns // MINUTE_NS * MINUTE_NS, last))
        return Window(start, start + minutes * MINUTE_NS)


@dataclass(frozen=True, slots=True)
class Sums:
    """What a window adds up to, by account or tenant."""

    gpu_ns: dict[str, int]
    tokens: dict[str, int]
    requests: dict[str, int]

    @property
    def total(self) -> int:
        """All GPU time of the window."""
        return sum(self.gpu_ns.values())


@dataclass(frozen=True, slots=True)
class HistoryView:
    """A window in equal parts: GPU time by account (with all tenants as `riders`), tokens, requests."""

    window: Window
    whole: Window
    parts: int
    accounts: dict[str, tuple[int, ...]]
    tokens: tuple[int, ...]
    requests: tuple[int, ...]
    sums: Sums
    warnings: tuple[str, ...]


class Historian:
    """Reads windows of a store's ledger, in a worker."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def look(self, window: Window | None, parts: int) -> HistoryView:
        """A window, by default the whole; in at most `parts` parts. Raises FareboxError where nothing is booked yet."""
        with self._desk.open() as store:
            whole = _whole(store)
            shown = whole if window is None else window
            return _add_up(store, shown, whole, max(1, min(parts, shown.minutes)))


def _whole(store: Store) -> Window:
    first_ns, end_ns = booked(store)
    return Window(min(first_ns, end_ns - FEWEST * MINUTE_NS), end_ns)


def _add_up(store: Store, window: Window, whole: Window, parts: int) -> HistoryView:
    from ...events import LEDGER

    owners: defaultdict[str, list[int]] = defaultdict(lambda: [0] * parts)
    tokens, requests = [0] * parts, [0] * parts
    sums = Sums(defaultdict(int), defaultdict(int), defaultdict(int))
    for batch in store.scan(LEDGER, COLUMNS, window.from_ns, window.to_ns):
        for row in _by_minute(batch):
            part = (row["minute_ns"] - window.from_ns) // MINUTE_NS * parts // window.minutes
            is_tenant = row["account"] == "tenant"
            name = row["tenant_id"] if is_tenant else f"·{row['account']}"
            both = row["prompt_tokens_sum"] + row["output_tokens_sum"]
            owners["riders" if is_tenant else row["account"]][part] += row["gpu_ns_sum"]
            tokens[part] += both
            requests[part] += row["requests_sum"]
            sums.gpu_ns[name] += row["gpu_ns_sum"]
            sums.tokens[name] += both
            sums.requests[name] += row["requests_sum"]
    accounts = {name: tuple(values) for name, values in owners.items()}
    plain = Sums(dict(sums.gpu_ns), dict(sums.tokens), dict(sums.requests))
    return HistoryView(window, whole, parts, accounts, tuple(tokens), tuple(requests), plain, tuple(store.warnings))


def _by_minute(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """A batch's sums by minute, account and tenant."""
    import pyarrow as pa

    table = pa.Table.from_batches([batch])
    summed: Any = [(name, "sum") for name in COLUMNS[3:]]
    return table.group_by(list(COLUMNS[:3])).aggregate(summed).to_pylist()
