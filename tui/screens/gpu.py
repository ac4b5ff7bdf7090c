"""The GPU page: every device and slice, and where the steps stand on the roofline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from ..glyphs import Glyphs
from ..views.gpu import gpu_view
from ..widgets.devices import Devices
from ..widgets.roofline import RooflinePosition
from .page import Page

if TYPE_CHECKING:
    from textual.types import CSSPathType
    from textual.widget import Widget

    from ..scene import Ask


class GpuPage(Page):
    """What the devices say of themselves, beside what the steps say of them."""

    MODE = "gpu"
    HINTS = "c copies the uuid"
    CSS_PATH: ClassVar[CSSPathType | None] = ["page.tcss", "gpu.tcss"]

    def body(self, glyphs: Glyphs) -> Iterable[Widget]:
        """Roofline and devices."""
        yield RooflinePosition(glyphs).data_bind(Page.snapshot, Page.view)
        yield Devices(glyphs).data_bind(Page.view)

    def ask(self) -> Ask:
        """The devices of the engine's host."""
        return gpu_view
