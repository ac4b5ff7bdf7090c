"""The widgets of the Batch page: the bus, the strip of steps, and who rides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.geometry import Size
from textual.reactive import reactive

from .. import numbers
from ..bus import FRAME, blocks_each, bus, parts_by_age, parts_by_context, plan
from ..glyphs import pad
from ..line import Line, Role, Span, spread, width_of
from ..numbers import SECOND_NS, share
from .figure import Figure
from .listing import Listing
from .timeline import timeline

if TYPE_CHECKING:
    from ..boarding import Kind, Ride
    from ..bus import Mark
    from ..views.batch import BatchView

LABEL = 9
REST = 15
"""Lines that the page needs besides the bus."""


class OfStep(Figure):
    """A figure of one step: the one that lies `back` steps behind the newest."""

    view: reactive[BatchView | None] = reactive(None, repaint=False)
    back: reactive[int] = reactive(0, repaint=False)

    def watch_view(self) -> None:
        """Draw the new steps."""
        self.redraw()

    def watch_back(self) -> None:
        """Draw the other step."""
        self.redraw()

    @property
    def ride(self) -> Ride | None:
        """The step that is shown, as far back as there are; None while there is none."""
        rides = self.view.rides if self.view else ()
        return rides[max(0, len(rides) - 1 - self.back)] if rides else None


class StepTitle(OfStep):
    """Which step is shown, how long it took and what it did."""

    DEFAULT_CSS = "StepTitle { height: 2; }"

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """Seats and step on the first line, who got on and off on the second."""
        ride, view = self.ride, self.view
        if ride is None or view is None:
            return []
        step = ride.step
        left: Line = [
            ("riding ", "label"),
            (str(step.running), "good" if step.running else "label"),
            (f" of {view.seats} seats", "label"),
            ("   waiting ", "label"),
            (str(step.waiting), "warn" if step.waiting else "label"),
        ]
        rows: Line = [
            ("   rows ", "label"),
            (f"{numbers.count(step.prefill_tokens)} prompt", "prefill"),
            (" + ", "label"),
            (f"{numbers.count(step.decode_tokens)} decode", "decode"),
        ]
        where = f"  {self.back} steps back" if self.back else "" if view.is_live else "  last step"
        right: Line = [
            (f"{numbers.millis(step.duration_ns)} ms", "strong"),
            (f"  step {step.step_seq:,}", "label"),
            (where, "warn" if self.back else "label"),
        ]
        if width_of([*left, *rows, *right]) >= width:
            rows = [("   rows ", "label"), (numbers.count(step.prefill_tokens + step.decode_tokens), "strong")]
        left += rows
        return self.spelled([spread(left, right, width), self._moves(ride)])

    def _moves(self, ride: Ride) -> Line:
        line: Line = []
        moves: tuple[tuple[str, dict[Kind, int], Role], ...] = (
            ("got on", ride.on, "good"),
            ("got off", ride.off, "warn"),
        )
        for title, moved, role in moves:
            names = [f"{self.glyphs.name(kind[0])} {count}" for kind, count in sorted(moved.items())]
            who: Span = (", ".join(names), role) if names else ("nobody", "label")
            line.extend([(f"{title} ", "label"), who, ("   ", "")])
        held = ride.step.held_by
        if held is not None:
            line.append((f"held small by {self.glyphs.name(held)}", "warn"))
        return line


class Bus(OfStep):
    """One seat per sequence."""

    DEFAULT_CSS = "Bus { height: auto; }"
    view: reactive[BatchView | None] = reactive(None, repaint=False, layout=True)
    fill: reactive[str] = reactive("age", repaint=False)

    def watch_fill(self) -> None:
        """Fill seats by something else."""
        self.redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as the roomiest seats take that leave room for the rest of the page."""
        if self.view is None or not self.view.rides:
            return 1
        found = plan(self.view.seats, width - 2 * FRAME, max(5, viewport.height - REST) - 3)
        return found.rows * (found.style.height + found.style.gap) + 3

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The bus."""
        ride, view = self.ride, self.view
        if ride is None or view is None:
            scraped = view is not None and view.is_scraped
            told = "n/a: its page tells no steps, so nobody knows who sits where" if scraped else "no step yet"
            return [[(told, "label")]]
        parts = parts_by_age(ride) if self.fill == "age" else parts_by_context(ride)
        drawn = bus(ride, view.seats, view.marks, parts, width, height, self.glyphs)
        return self.spelled(drawn)


class Strip(OfStep):
    """The newest steps side by side, one column each: riders, and how long each step took."""

    DEFAULT_CSS = "Strip { height: 4; }"

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """Riders, lengths, and a sign under the step that is shown."""
        view = self.view
        if view is None or not view.rides:
            return []
        room = width - LABEL
        last = len(view.rides) - max(0, self.back - room + 1)
        rides = view.rides[max(0, last - room) : last]
        riders = timeline([ride.step.running for ride in rides], room, max(1, height - 3), view.seats, self.glyphs)
        longest = max(ride.step.duration_ns for ride in rides)
        lengths = timeline([ride.step.duration_ns for ride in rides], room, 1, longest, self.glyphs)
        at = LABEL + room - 1 - (self.back - (len(view.rides) - last))
        pointer = "^" if self.glyphs.ascii_only else "▲"
        lines: list[Line] = [
            *([(pad("riders" if i == 0 else "", LABEL), "label"), (row, "good")] for i, row in enumerate(riders)),
            [(pad("ms", LABEL), "label"), (lengths[0], "decode")],
            [(" " * at, ""), (pointer, "warn" if self.back else "label")],
        ]
        hint = (
            "left and right walk through the last steps" if not self.back else "right: forward   End: the newest step"
        )
        return [*lines, [(pad("", LABEL) + hint, "faint")]]


class Riders(Listing, OfStep):
    """Who rides in the step: seats, ages, context, and what of the step each kind pays."""

    COLUMNS: ClassVar[tuple[tuple[str, int], ...]] = (
        *(("seats", 6), ("on", 4), ("off", 4), ("oldest", 9), ("newest", 9)),
        *(("blocks", 7), ("rows", 6), ("step %", 7)),
    )

    def count(self) -> int:
        """Everyone who rides, or just got off."""
        return len(self._kinds())

    def head(self, width: int) -> list[Line]:
        """The titles."""
        name = self._name_width(width)
        return [[(pad("  tenant", name), "label"), *((f"{title:>{size}}", "label") for title, size in self.COLUMNS)]]

    def row(self, index: int, width: int) -> Line:
        """One tenant and tier."""
        ride, kind = self.ride, self._kinds()[index]
        if ride is None or self.view is None:
            return []
        mark = self.view.marks[kind]
        texts = self._texts(ride, kind)
        told: Line = [(f"{texts[i]:>{size}}", "strong" if i == 0 else "") for i, (_, size) in enumerate(self.COLUMNS)]
        return [*self._who(kind, mark, self._name_width(width)), *told]

    def _who(self, kind: Kind, mark: Mark, width: int) -> Line:
        tier = "" if kind[1] == "standard" else f" ({self.glyphs.name(kind[1])}{' »' if kind[1] == 'fast' else ''})"
        tier = self.glyphs.text(tier)
        name = self.glyphs.fit(kind[0], max(4, width - 3 - len(tier)))
        return [(f"{mark.letter} ", mark.role), (pad(f"{name}{tier}", width - 2), mark.role)]

    def _texts(self, ride: Ride, kind: Kind) -> list[str]:
        seats = ride.seats.get(kind, ())
        cells = [cell for cell in ride.cells if (cell.tenant_id, cell.tier) == kind]
        ages = [("" if seat.is_exact else "≥") + _age(ride.step.ended_ns - seat.since_ns) for seat in seats]
        paid = sum(cell.gpu_ns or 0 for cell in cells)
        part = share(paid, ride.step.duration_ns * ride.step.gpus)
        texts = [
            *(str(len(seats)), str(ride.on.get(kind, 0) or "–"), str(ride.off.get(kind, 0) or "–")),
            *(ages[0] if ages else "–", ages[-1] if ages else "–"),
            *(f"{blocks_each(ride, kind):.0f}" if seats else "–", numbers.count(sum(c.rows for c in cells))),
            "–" if part is None else f"{part * 100:.1f}",
        ]
        return [self.glyphs.text(text) for text in texts]

    def _kinds(self) -> list[Kind]:
        ride = self.ride
        return sorted({*ride.seats, *ride.off}) if ride else []

    def _name_width(self, width: int) -> int:
        return max(8, min(34, width - sum(size for _, size in self.COLUMNS)))


def _age(ns: int) -> str:
    s = ns / SECOND_NS
    return f"{s * 1000:.0f} ms" if s < 1 else f"{s:.1f} s" if s < 100 else numbers.seconds(ns)
