"""The meters: seats on the left, steps on the right, each with a time-line or a bar where it has one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..costing.apportion import apportion
from . import lines, numbers
from .glyphs import Glyphs
from .line import Line, Role, beside, width_of
from .numbers import share
from .widgets.bar import bar
from .widgets.timeline import timeline

if TYPE_CHECKING:
    from .snapshot import Series, Snapshot

LABEL = lines.INDENT
TWO_COLUMNS = 76
GUTTER = 2


@dataclass(frozen=True)
class Meter:
    """A label, a figure, and what is drawn beside it, `room` cells after the label so that it never moves.

    A time-line runs from 0 to `top`, or to its own highest value; a bar shows `part`. Of the rows to spare each meter
    gets its `weight`; where rows are short the meter with the highest `rank` goes first.
    """

    label: str
    tell: Callable[[Snapshot], Line]
    rank: int
    room: int = 0
    role: Role = ""
    values: Callable[[Series], Sequence[float | None]] | None = None
    top: Callable[[Snapshot], float] | None = None
    least: float = 0.0
    part: Callable[[Snapshot], float | None] | None = None
    weight: int = 0
    detail: Callable[[Snapshot], Line] | None = None


def meters(snapshot: Snapshot, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """All meters in two columns, or in one where it is narrow."""
    if width < TWO_COLUMNS:
        return _column([*SEATS, *STEPS], snapshot, width, height, glyphs)
    left = (width - GUTTER) * 4 // 7
    seats = _column(SEATS, snapshot, left, height, glyphs)
    steps = _column(STEPS, snapshot, width - GUTTER - left, height, glyphs)
    return beside(seats, steps, left + GUTTER)


def kv_used(s: Snapshot) -> float | None:
    """Part of the KV blocks in use; None when it is not known."""
    return share(s.kv_used, s.kv_total) if s.kv_used is not None and s.kv_total is not None else None


def riding(s: Snapshot) -> Line:
    """Seats taken."""
    return [(str(s.riding), "good" if s.riding else "label"), (f" of {s.seats} seats", "label")]


def waiting(s: Snapshot) -> Line:
    """The queue."""
    return [(str(s.waiting), "warn" if s.waiting else "label")]


def put_off(s: Snapshot) -> Line:
    """Riders and requests that there was no room for."""
    return [
        (numbers.per_minute(s.preemptions, s.wall_ns), "bad" if s.preemptions else "strong"),
        ("/min   rejected ", "label"),
        (numbers.per_minute(s.rejected, s.wall_ns), "bad" if s.rejected else "strong"),
        ("/min", "label"),
    ]


def step(s: Snapshot) -> Line:
    """Mean length of a step."""
    return [(numbers.millis(s.step_ns // s.steps if s.steps else None), "strong"), (" ms", "label")]


def split(part_ns: int, s: Snapshot) -> Line:
    """A phase's part of the busy time."""
    return [(numbers.percent(share(part_ns, s.prefill_ns + s.decode_ns)), "strong")]


def finished(s: Snapshot) -> Line:
    """Requests that ended."""
    return [(numbers.per_minute(s.finished, s.wall_ns), "strong"), (" requests/min", "label")]


def _mean(s: Snapshot) -> Line:
    mean = share(s.seat_ns, s.wall_ns)
    return [("mean ", "label"), ("–" if mean is None else f"{mean:.1f}", "strong")]


SEATS: tuple[Meter, ...] = (
    Meter("riding", riding, 0, 15, "good", lambda s: s.riding, top=lambda s: s.seats, weight=2, detail=_mean),
    Meter("waiting", waiting, 1, 15, "warn", lambda s: s.waiting, least=4.0, weight=1),
    Meter("KV cache", lambda s: [(numbers.percent(kv_used(s)), "strong")], 2, 15, part=kv_used),
    Meter("preempted", put_off, 5),
    Meter("tokens/s", lines.tokens, 3),
)
STEPS: tuple[Meter, ...] = (
    Meter("step", step, 7, 8, "label", lambda s: s.step_ms, weight=1),
    Meter("prefill", lambda s: split(s.prefill_ns, s), 8, 8, "prefill", lambda s: s.prefill, lambda _: 1.0, weight=1),
    Meter("decode", lambda s: split(s.decode_ns, s), 9, 8, "decode", lambda s: s.decode, lambda _: 1.0, weight=1),
    Meter("TTFT", lambda s: lines.latency(s.ttft), 4),
    Meter("per token", lambda s: lines.latency(s.itl), 6),
    Meter("finished", finished, 10),
)


def _column(column: Sequence[Meter], snapshot: Snapshot, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    shown = list(column)
    while len(shown) > height:
        shown.remove(max(shown, key=lambda m: m.rank))
    weights = [m.weight for m in shown]
    spare = apportion(height - len(shown), weights) if any(weights) else [0] * len(shown)
    drawn: list[Line] = []
    for meter, more in zip(shown, spare, strict=True):
        drawn += _meter(meter, snapshot, width, 1 + more, glyphs)
    return drawn


def _meter(meter: Meter, snapshot: Snapshot, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    told: list[Line] = [[(f"{meter.label:<{LABEL}}", "label"), *meter.tell(snapshot)]]
    if meter.detail is not None and height > 1:
        told.append([(" " * LABEL, ""), *meter.detail(snapshot)])
    told += [[] for _ in range(height - len(told))]
    told = [[(glyphs.text(text), role) for text, role in line] for line in told]
    left = max(LABEL + meter.room, *map(width_of, told)) + 1
    return beside(told, _drawing(meter, snapshot, width - left, height, glyphs), left)


def _drawing(meter: Meter, snapshot: Snapshot, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    if width <= 0:
        return []
    if meter.values is not None:
        values = meter.values(snapshot.series)[-width:]
        top = meter.top(snapshot) if meter.top else max((v for v in values if v), default=0.0)
        rows = timeline(values, width, height, max(top, meter.least), glyphs)
        return [[(row, meter.role)] for row in rows]
    part = meter.part(snapshot) if meter.part else None
    if part is None:
        return []
    filled, empty = bar(part, width, glyphs)
    return [[(filled, "bad" if part >= 0.95 else "warn" if part >= 0.8 else "good"), (empty, "faint")]]
