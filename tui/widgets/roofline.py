"""Where the last minute's steps stand between memory and compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.reactive import reactive

from .. import numbers
from ..line import Line, Role
from ..numbers import SECOND_NS
from ..verdict import verdict
from .bar import bar
from .figure import Figure
from .timeline import timeline

if TYPE_CHECKING:
    from ..views.gpu import GpuView, Roofline

LABEL = 12


class RooflinePosition(Figure):
    """Compute and bandwidth in use (MFU, MBU), the arithmetic intensity, and what that means."""

    DEFAULT_CSS = "RooflinePosition { height: 7; }"
    view: reactive[GpuView | None] = reactive(None, repaint=False)

    def watch_view(self) -> None:
        """Draw the new minute."""
        self.redraw()

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """Two bars with their time-lines, the intensity, and the verdict."""
        s = self.snapshot
        if s is None or self.view is None:
            return []
        roofline = self.view.roofline
        lines: list[Line] = [
            [("roofline", "brand"), ("   steps of the last minute against the datasheet", "label")],
            self._meter("compute", "MFU", s.compute_used, roofline.series[0], "prefill", width),
            self._meter("bandwidth", "MBU", s.bandwidth_used, roofline.series[1], "decode", width),
            self._intensity(roofline),
        ]
        told, role = verdict(s)
        lines.append([(f"{'':<{LABEL}}", ""), (told, role)])
        return self.spelled(lines)

    def _meter(
        self, title: str, short: str, part: float | None, series: tuple[float | None, ...], role: Role, width: int
    ) -> Line:
        told: Line = [
            (f"{title:<{LABEL}}", "label"),
            (f"{numbers.percent(part):>5}", "strong"),
            (f" {short}  ", "label"),
        ]
        if part is None:
            reason = self.snapshot.roofline_reason if self.snapshot else None
            return [*told, (self.glyphs.name(reason or "no step in this minute"), "label")]
        room = max(0, width - LABEL - 12)
        drawn = min(30, room // 2)
        filled, empty = bar(part, drawn, self.glyphs)
        trend = timeline(series, max(0, min(60, room - drawn - 2)), 1, 1.0, self.glyphs)
        return [*told, (filled, role), (empty, "faint"), ("  ", ""), (trend[0], role)]

    def _intensity(self, roofline: Roofline) -> Line:
        line: Line = [(f"{'intensity':<{LABEL}}", "label")]
        if not roofline.bytes or not roofline.flops:
            return [*line, ("n/a: the steps do not tell their FLOPs and bytes", "label")]
        line.extend([(f"{roofline.flops / roofline.bytes:,.0f}", "strong"), (" FLOP per byte read", "label")])
        if roofline.peak is not None:
            ridge = roofline.peak[0] / roofline.peak[1]
            line.append((f"; compute and memory are in balance at {ridge:,.0f}", "label"))
        if roofline.step_ns:
            rate = roofline.flops * SECOND_NS / roofline.step_ns
            line.append((f"   {rate / 1e12:,.0f} TFLOP/s", ""))
        return line
