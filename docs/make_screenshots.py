"""Makes the pictures in README and docs from the running demo: `make screenshots`.

Starts the demo's engine, opens the screens on its store, walks through the pages, and lets Textual export what they
show as SVG.
"""

from __future__ import annotations

import asyncio
import tempfile
from multiprocessing import get_context
from pathlib import Path

from textual.pilot import Pilot

from farebox.cli.desk import StoreDesk
from farebox.cli.top import gpu_peaks
from farebox.collector.demo import record_demo
from farebox.tui.app import top_app
from farebox.tui.glyphs import UNICODE
from farebox.tui.navigation import PAGES
from farebox.tui.state import State

DOCS = Path(__file__).resolve().parent
SIZE = (120, 34)
LEAD_S = 86  # the demo's rhythm: at this age the bus is well filled
WATCH_S = 4.0


async def pictures(store: Path) -> dict[str, str]:
    """Every page as SVG, by name."""
    app = top_app(store, peaks=gpu_peaks, desk=StoreDesk(store), state=State())
    app.glyphs = UNICODE
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(WATCH_S)
        return {page.mode: await _picture(pilot, page.key) for page in PAGES}


async def _picture(pilot: Pilot[None], key: str) -> str:
    await pilot.press(key)
    await pilot.pause(WATCH_S / 2)
    return pilot.app.export_screenshot(title="farebox demo")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        engine = get_context("spawn").Process(target=record_demo, args=(store, LEAD_S), kwargs={"paced": True})
        engine.start()
        try:
            while not (store / "live.sqlite").exists():
                engine.join(0.2)
            drawn = asyncio.run(pictures(store))
        finally:
            engine.terminate()
            engine.join()
    for page, svg in drawn.items():
        (DOCS / f"{page}.svg").write_text(svg, "utf-8")


if __name__ == "__main__":
    main()
