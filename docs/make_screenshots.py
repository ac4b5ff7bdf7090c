"""Makes the pictures in README and docs from the demo: `make screenshots`.

Records ten virtual minutes of the demo and lets Textual export the live screen as SVG.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from farebox.cli.top import gpu_peaks
from farebox.collector.demo import record_demo
from farebox.tui.app import top_app

DOCS = Path(__file__).resolve().parent
SIZE = (120, 36)


async def live(store: Path) -> None:
    app = top_app(store, peaks=gpu_peaks)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(3)
        svg = app.export_screenshot(title="farebox demo")
    (DOCS / "live.svg").write_text(svg, "utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        record_demo(store, 600, paced=False)
        asyncio.run(live(store))


if __name__ == "__main__":
    main()
