"""The widgets of the History page: time-lines of a window, and what it adds up to beside another one."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from textual.reactive import reactive

from .. import numbers
from ..glyphs import Glyphs, pad
from ..line import Line, Role, spread
from ..numbers import share
from ..views.history import MINUTE_NS, OTHERS, HistoryView
from .figure import Figure
from .listing import Listing
from .timeline import timeline

LABEL = 12
COLUMN = 12


class Past(Figure):
    """How the window went: who had the GPUs, tokens and requests, one column per part."""

    DEFAULT_CSS = "Past { height: 11; }"
    past: reactive[HistoryView | None] = reactive(None, repaint=False)
    told: reactive[str] = reactive("", repaint=False)

    def watch_past(self) -> None:
        """Draw another window."""
        self.redraw()

    def watch_told(self) -> None:
        """Say what happens."""
        self.redraw()

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """From, to, and the time-lines."""
        past = self.past
        if past is None:
            return [[(line, "label")] for line in wrap(self.glyphs.name(self.told or "reading"), max(1, width))]
        room = width - LABEL
        lines = [self._title(past, width)]
        whole = [sum(values) for values in zip(*past.accounts.values(), strict=True)]
        rows = max(1, min(3, (height - 5) // 2))
        owners: tuple[tuple[str, Role, int], ...] = (
            ("riders", "good", rows),
            ("idle", "warn", 1),
            ("unobserved", "bad", 1),
        )
        for name, role, tall in owners:
            values = past.accounts.get(name)
            if values is not None or name != "unobserved":
                parts = [share(v, w) for v, w in zip(values or [0] * past.parts, whole, strict=True)] if whole else []
                lines += self._drawn(f"{name} %", stretched(parts, room), room, tall, 1.0, role)
        work: tuple[tuple[str, Sequence[int], Role, int], ...] = (
            ("tokens", past.tokens, "decode", rows),
            ("requests", past.requests, "prefill", 1),
        )
        for name, counts, role, tall in work:
            lines += self._drawn(name, stretched(counts, room), room, tall, max(counts), role)
        if self.told:
            lines.append([(self.glyphs.name(self.told), "label")])
        return self.spelled(lines)

    def _title(self, past: HistoryView, width: int) -> Line:
        window = past.window
        left: Line = [
            (f"{numbers.date(window.from_ns)} {numbers.clock(window.from_ns)[:5]}", "strong"),
            (" – ", "label"),
            (f"{numbers.date(window.to_ns)} {numbers.clock(window.to_ns)[:5]} UTC", "strong"),
        ]
        each = window.minutes / past.parts
        right: Line = [
            (f"{_minutes(window.minutes)} of {_minutes(past.whole.minutes)}, {each:.0f} min a column", "label")
        ]
        return spread(left, right, width)

    def _drawn(
        self, title: str, values: Sequence[float | None], room: int, height: int, top: float, role: Role
    ) -> list[Line]:
        rows = timeline(values, room, height, top, self.glyphs)
        return [[(pad(title if i == 0 else "", LABEL), "label"), (row, role)] for i, row in enumerate(rows)]


class PastSums(Listing):
    """Accounts and tenants of the window, and beside them those of the window that was marked."""

    past: reactive[HistoryView | None] = reactive(None, repaint=False)
    marked: reactive[HistoryView | None] = reactive(None, repaint=False)

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs)
        self._names: list[str] = []

    def watch_past(self) -> None:
        """Draw another window's sums."""
        self.redraw()

    def watch_marked(self) -> None:
        """Compare with another window."""
        self.redraw()

    def redraw(self) -> None:
        """Sort the names, once for all rows."""
        self._names = self._sorted()
        super().redraw()

    def count(self) -> int:
        """Everyone in one of the windows."""
        return len(self._names)

    def head(self, width: int) -> list[Line]:
        """Titles; two GPU columns when two windows are compared."""
        if self.past is None:
            return []
        titles = ["GPU %", "GPU·s", "tokens", "requests"]
        if self.marked is not None:
            titles += ["was %", "was GPU·s", "was tokens"]
        told = "".join(f"{title:>{COLUMN}}" for title in titles)
        return [[(pad("tenant", self._room(width)) + self.glyphs.text(told), "label")]]

    def row(self, index: int, width: int) -> Line:
        """One account or tenant."""
        name = self._names[index]
        is_account = name.startswith("·")
        role: Role = "warn" if name == "·idle" else "bad" if name == "·unobserved" else "label" if is_account else ""
        shown = self.glyphs.fit(name.removeprefix("·") if is_account else name, self._room(width) - 1)
        line: Line = [(pad(shown, self._room(width)), role)]
        for view in (self.past, self.marked):
            if view is not None:
                line += self._figures(view, name, with_requests=view is self.past)
        return self.spelled([line])[0]

    def _figures(self, view: HistoryView, name: str, *, with_requests: bool) -> Line:
        sums = view.sums
        gpu_ns = sums.gpu_ns.get(name, 0)
        part = share(gpu_ns, sums.total)
        texts = [numbers.percent(part), f"{gpu_ns / 1e9:,.0f}", f"{sums.tokens.get(name, 0):,}"]
        texts += [f"{sums.requests.get(name, 0):,}"] if with_requests else []
        return [("".join(f"{text:>{COLUMN}}" for text in texts), "strong" if with_requests else "label")]

    def _sorted(self) -> list[str]:
        if self.past is None:
            return []
        used = dict(self.past.sums.gpu_ns)
        for name in self.marked.sums.gpu_ns if self.marked else ():
            used.setdefault(name, 0)
        tenants = sorted((n for n in used if not n.startswith("·")), key=lambda n: (-used[n], n))
        return tenants + [f"·{name}" for name in OTHERS if f"·{name}" in used]

    def _room(self, width: int) -> int:
        columns = 7 if self.marked else 4
        return max(12, min(40, width - columns * COLUMN))


def stretched(values: Sequence[float | None], room: int) -> list[float | None]:
    """Values drawn over `room` columns, each as wide as the others or one column wider."""
    n = len(values)
    return [values[column * n // room] for column in range(room)] if n and n < room else list(values)


def _minutes(minutes: int) -> str:
    return numbers.seconds(minutes * MINUTE_NS)
