"""Makes the pictures in README and docs from the running demo: `make screenshots`.

Starts the demo's engine, opens the live screen on its store, and lets Textual export what it shows as SVG.
"""

from __future__ import annotations

import asyncio
import tempfile
from multiprocessing import get_context
from pathlib import Path

from farebox.cli.top import gpu_peaks
from farebox.collector.demo import record_demo
from farebox.tui.app import top_app

DOCS = Path(__file__).resolve().parent
SIZE = (120, 34)
LEAD_S = 86  # the demo's rhythm: at this age the bus is well filled
WATCH_S = 4.0


async def live(store: Path) -> str:
    app = top_app(store, peaks=gpu_peaks)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(WATCH_S)
        return app.export_screenshot(title="farebox demo")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        engine = get_context("spawn").Process(target=record_demo, args=(store, LEAD_S), kwargs={"paced": True})
        engine.start()
        try:
            while not (store / "live.sqlite").exists():
                engine.join(0.2)
            svg = asyncio.run(live(store))
        finally:
            engine.terminate()
            engine.join()
    (DOCS / "live.svg").write_text(svg, "utf-8")


if __name__ == "__main__":
    main()
