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
from .verdict import NO_STEPS
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
    return s.kv_part


def kv(s: Snapshot) -> Line:
    """Part of the KV blocks in use; of several engines the fullest one's, and the others' behind it."""
    if s.kv_part is None:
        return _not_known(s, "kv_ppm") if s.missing else [("–", "strong")]
    told: Line = [(numbers.percent(s.kv_part), "strong")]
    if s.kv_ppm and len(s.kv_ppm) > 1:
        told.append((f" ({', '.join(f'{ppm / 1e4:.0f}' for ppm in s.kv_ppm[:8])})", "label"))
    return told


def riding(s: Snapshot) -> Line:
    """Seats taken."""
    if s.riding is None:
        return _not_known(s, "running")
    seats = f" of {s.seats} seats" if s.seats else " on board"
    return [(str(s.riding), "good" if s.riding else "label"), (seats, "label")]


def waiting(s: Snapshot) -> Line:
    """The queue."""
    if s.waiting is None:
        return _not_known(s, "waiting")
    return [(str(s.waiting), "warn" if s.waiting else "label")]


def put_off(s: Snapshot) -> Line:
    """Riders and requests that there was no room for."""
    if s.preemptions is None:
        return _not_known(s, "preemptions")
    if s.engine.every_ns is not None:
        return [(numbers.per_minute(s.preemptions, s.wall_ns), "bad" if s.preemptions else "strong"), ("/min", "label")]
    return [
        (numbers.per_minute(s.preemptions, s.wall_ns), "bad" if s.preemptions else "strong"),
        ("/min   rejected ", "label"),
        (numbers.per_minute(s.rejected, s.wall_ns), "bad" if s.rejected else "strong"),
        ("/min", "label"),
    ]


def step(s: Snapshot) -> Line:
    """Mean length of a step."""
    if s.engine.every_ns is not None:
        return [("n/a", "label"), (f" {NO_STEPS}", "faint")]
    return [(numbers.millis(s.step_ns // s.steps if s.steps else None), "strong"), (" ms", "label")]


def split(part_ns: int, s: Snapshot) -> Line:
    """A phase's part of the busy time."""
    return [(numbers.percent(share(part_ns, s.prefill_ns + s.decode_ns)), "strong")]


def finished(s: Snapshot) -> Line:
    """Requests that ended."""
    if s.finished is None:
        return _not_known(s, "requests")
    return [(numbers.per_minute(s.finished, s.wall_ns), "strong"), (" requests/min", "label")]


def ttft(s: Snapshot) -> Line:
    """Time to first token."""
    return lines.latency(s.ttft, s.missing.get("ttft"))


def itl(s: Snapshot) -> Line:
    """Time between tokens."""
    return lines.latency(s.itl, s.missing.get("itl"))


def _not_known(s: Snapshot, column: str) -> Line:
    return [("n/a", "label"), (f" {s.missing.get(column, '')}".rstrip(), "faint")]


def _mean(s: Snapshot) -> Line:
    mean = share(s.seat_ns, s.wall_ns)
    return [("mean ", "label"), ("–" if mean is None else f"{mean:.1f}", "strong")]


SEATS: tuple[Meter, ...] = (
    Meter("riding", riding, 0, 15, "good", lambda s: s.riding, lambda s: s.seats or 0, 1.0, weight=2, detail=_mean),
    Meter("waiting", waiting, 1, 15, "warn", lambda s: s.waiting, least=4.0, weight=1),
    Meter("KV cache", kv, 2, 15, part=kv_used),
    Meter("preempted", put_off, 5),
    Meter("tokens/s", lines.tokens, 3),
)
STEPS: tuple[Meter, ...] = (
    Meter("step", step, 7, 8, "label", lambda s: s.step_ms, weight=1),
    Meter("prefill", lambda s: split(s.prefill_ns, s), 8, 8, "prefill", lambda s: s.prefill, lambda _: 1.0, weight=1),
    Meter("decode", lambda s: split(s.decode_ns, s), 9, 8, "decode", lambda s: s.decode, lambda _: 1.0, weight=1),
    Meter("TTFT", ttft, 4),
    Meter("per token", itl, 6),
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
